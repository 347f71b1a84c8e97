// SPDX-License-Identifier: Apache-2.0
// The switch's end of the codec: requests read, replies written. See codec.hpp for
// ownership, threads and cost.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "dataplane/openflow/codec.hpp"
#include "dataplane/openflow/schema.hpp"

namespace sluice::openflow {

struct FlowRequest {
    std::uint8_t table = kAllTables;
    std::vector<MatchField> match;
    std::uint64_t cookie = 0;
    std::uint64_t cookie_mask = 0;
    bool output_filter = false;
};
Decoded<FlowRequest> decode_flow_request(MessageView message);

inline constexpr std::uint32_t kAllPorts = 0xffffffff;
inline constexpr std::uint32_t kAllMeters = 0xffffffff;
Decoded<std::uint32_t> decode_port_request(MessageView message);
std::uint32_t decode_meter_request(MessageView message);

enum class Role : std::uint8_t { no_change, equal, primary, secondary };
struct RoleRequest {
    Role role = Role::no_change;
    std::uint64_t generation = 0;
};
Decoded<RoleRequest> decode_role_request(MessageView message);

struct ExperimenterRequest {
    Query query = Query::digest;
    std::string_view text;  // into the message
};
Decoded<ExperimenterRequest> decode_experimenter_request(MessageView message);
// Whether the rest of the request is in further messages.
bool has_more_segments(MessageView multipart_request);
// Whether a table-features request would change anything (has a body).
bool has_body(MessageView multipart_request);

void append_features_reply(Bytes& out, MessageView request, std::uint64_t datapath_id,
                           std::uint8_t tables);
struct SwitchConfig {
    std::uint16_t flags = 0;
    std::uint16_t miss_send_len = 128;
};
void append_config_reply(Bytes& out, MessageView request, const SwitchConfig& config);
Decoded<SwitchConfig> decode_set_config(MessageView message);
void append_role_reply(Bytes& out, MessageView request, const RoleRequest& role);
void append_barrier_reply(Bytes& out, MessageView request);
void append_bundle_reply(Bytes& out, MessageView request, const BundleControl& control);

// Multiparts that are small: appended whole, in as many segments as they need.
struct Description {
    std::string manufacturer, hardware, software, serial, datapath;
};
void append_desc_reply(Bytes& out, MessageView request, const Description& description);
void append_ports_reply(Bytes& out, MessageView request, std::span<const PortInfo> ports);
void append_port_stats_reply(Bytes& out, MessageView request, std::span<const PortInfo> ports);
struct TableStats {
    std::uint8_t table = 0;
    std::uint32_t entries = 0;
};
void append_table_stats_reply(Bytes& out, MessageView request, std::span<const TableStats> tables);
void append_table_features_reply(Bytes& out, MessageView request,
                                 std::span<const TableSchema* const> tables);
void append_aggregate_reply(Bytes& out, MessageView request, const EntryStats& sum,
                            std::uint32_t entries);
void append_meter_features_reply(Bytes& out, MessageView request, std::uint32_t capacity);
void append_experimenter_reply(Bytes& out, MessageView request, Query query, std::string_view text);
void append_digest_reply(Bytes& out, MessageView request, std::span<const TableDigest> digests);
// A reply of a multipart that holds nothing: queues, groups. `zeros`: octets of a fixed body.
void append_empty_reply(Bytes& out, MessageView request, std::size_t zeros = 0);

// Multiparts that may be large: records are appended to a segment in hand, and whole
// segments are taken out when the connection has room for them.
class RecordWriter {
  public:
    explicit RecordWriter(MessageView request);
    ~RecordWriter();
    RecordWriter(const RecordWriter&) = delete;
    RecordWriter& operator=(const RecordWriter&) = delete;

    void append(const Entry& entry, const EntryStats& stats);
    void append_config(const Meter& meter);
    void append_stats(const Meter& meter);
    // Moves everything so far to `out`; `more`: further segments follow.
    void take(Bytes& out, bool more);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace sluice::openflow
