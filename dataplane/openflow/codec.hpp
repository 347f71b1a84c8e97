// SPDX-License-Identifier: Apache-2.0
// OpenFlow 1.3 messages to and from plain values: what both ends need. The requests and
// replies of one end only are in switch_codec.hpp and controller_codec.hpp.
//
// Open vSwitch's library does the work and is seen only in the .cpp files; its C strings,
// buffers and error numbers stay there.
//
// Ownership: encoders append a whole message to a byte buffer of the caller; decoders read
// a view and copy what they return. Threads: the control thread only (the library keeps
// tables of its own). Cost: about a microsecond for an entry, either way.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/openflow/backend.hpp"
#include "dataplane/openflow/entry.hpp"
#include "dataplane/openflow/errors.hpp"

namespace sluice::openflow {

inline constexpr std::uint8_t kVersion = 0x04;  // OpenFlow 1.3
inline constexpr std::uint8_t kAllTables = 0xff;
// Of this project's own experimenter messages: a locally administered OUI (the bit 0x02 of
// its first octet), so that no vendor's can be equal.
inline constexpr std::uint32_t kExperimenter = 0x0002534c;

using Bytes = std::vector<std::uint8_t>;
// One whole message, header included; the first byte lies on an 8-byte boundary.
using MessageView = std::span<const std::uint8_t>;
// The transaction id that a request and its replies share.
using Xid = Id<struct XidTag>;

// What this project does with a message. `other`: the library knows it, neither end does.
enum class Kind : std::uint8_t {
    hello,
    error,
    echo_request,
    echo_reply,
    other,
    features_request,
    features_reply,
    get_config_request,
    get_config_reply,
    set_config,
    barrier_request,
    barrier_reply,
    role_request,
    role_reply,
    get_async_request,
    set_async,
    packet_out,
    port_mod,
    group_mod,
    table_mod,
    queue_config,
    flow_mod,
    meter_mod,
    bundle_control,
    bundle_add,
    desc_request,
    flow_request,
    aggregate_request,
    table_request,
    port_stats_request,
    port_desc_request,
    queue_request,
    table_features_request,
    group_request,
    group_desc_request,
    group_features_request,
    meter_request,
    meter_config_request,
    meter_features_request,
    experimenter_request,
    other_multipart_request,
    desc_reply,
    flow_reply,
    meter_config_reply,
    experimenter_reply,
    other_reply,
};

// The library writes what it dislikes to standard error; a peer could fill a disk with it.
// What is refused is logged by those who refuse it.
void silence_library();

struct Header {
    std::uint8_t version = 0;
    std::uint8_t type = 0;
    std::uint16_t length = 0;
    Xid xid;
};
// `message` has at least 8 octets.
Header header(MessageView message);
// Checks length and structure of the fixed part; whatever the library does not know at all
// is the error to answer.
Decoded<Kind> classify(MessageView message);

enum class ModCommand : std::uint8_t { add, modify, modify_strict, remove, remove_strict };

// OFPT_FLOW_MOD. For `add`, `entry.cookie` is the new entry's; otherwise an entry is only
// concerned if its cookie agrees with `cookie` in the bits of `cookie_mask`.
struct FlowMod {
    ModCommand command = ModCommand::add;
    Entry entry;
    std::uint64_t cookie = 0;
    std::uint64_t cookie_mask = 0;
    bool all_tables = false;  // remove only
    bool check_overlap = false;
    bool output_filter = false;  // by out_port or out_group, which no entry has
};
Decoded<FlowMod> decode_flow_mod(MessageView message);
void append_flow_mod(Bytes& out, Xid xid, const FlowMod& mod);

enum class MeterCommand : std::uint8_t { add, modify, remove };

struct MeterMod {
    MeterCommand command = MeterCommand::add;
    Meter meter;
    bool all = false;  // remove only
};
Decoded<MeterMod> decode_meter_mod(MessageView message);
void append_meter_mod(Bytes& out, Xid xid, const MeterMod& mod);

// ONF extension 230. Requests have even types, their replies the odd ones after them.
enum class BundleType : std::uint16_t {
    open_request,
    open_reply,
    close_request,
    close_reply,
    commit_request,
    commit_reply,
    discard_request,
    discard_reply,
};
inline constexpr std::uint16_t kBundleAtomic = 1;
inline constexpr std::uint16_t kBundleOrdered = 2;

struct BundleControl {
    std::uint32_t bundle = 0;
    BundleType type = BundleType::open_request;
    std::uint16_t flags = 0;
};
Decoded<BundleControl> decode_bundle_control(MessageView message);
void append_bundle_control(Bytes& out, Xid xid, const BundleControl& control);

struct BundleAdd {
    std::uint32_t bundle = 0;
    std::uint16_t flags = 0;
    Kind inner_kind = Kind::other;
    MessageView inner;  // into the message
};
// An inner message of a kind that no bundle can hold is kBundleUnsupported.
Decoded<BundleAdd> decode_bundle_add(MessageView message);
// The bundle that any BUNDLE_ADD names, also one that does not decode.
std::uint32_t bundle_of(MessageView bundle_add);
// A modification wrapped for a bundle.
void append_bundled(Bytes& out, Xid xid, std::uint32_t bundle, const FlowMod& mod);
void append_bundled(Bytes& out, Xid xid, std::uint32_t bundle, const MeterMod& mod);

// Messages of a header and, perhaps, a body.
void append_hello(Bytes& out, Xid xid);
// Whether a HELLO, with its version bitmap where it has one, admits OpenFlow 1.3.
bool hello_admits_us(MessageView hello);
void append_echo_request(Bytes& out, Xid xid);
void append_echo_reply(Bytes& out, MessageView request);
void append_barrier_request(Bytes& out, Xid xid);
// The error that answers `request`. Its data are the first 64 octets of the request (OpenFlow
// 1.3.5 section 7.4.4: at least), then the sentence, which is for people.
void append_error(Bytes& out, const ErrorCode& code, MessageView request,
                  std::string_view sentence = {});

// kQueryRefused, whose data is the sentence.
void append_refusal(Bytes& out, std::string_view sentence, MessageView request);

struct RemoteError {
    ErrorCode code;
    Xid xid;
    std::string text;  // the sentence it carries, if any, and the standard's name of it
};
Decoded<RemoteError> decode_error(MessageView message);

// This project's experimenter multiparts (OFPMP_EXPERIMENTER): the kinds whose request and
// reply are JSON texts, and the digest, whose request is empty and whose reply is 16
// octets a table: table, 3 of padding, count, sum, in network byte order.
enum class Query : std::uint32_t {
    digest = 1,
    explain = 2,
    flows = 3,
    drops = 4,
    gateway = 5,
    limits = 6,
};
std::string_view to_string(Query query);

}  // namespace sluice::openflow
