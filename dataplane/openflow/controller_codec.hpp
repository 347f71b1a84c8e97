// SPDX-License-Identifier: Apache-2.0
// The controller's end of the codec: requests written, replies read. See codec.hpp for
// ownership, threads and cost.
#pragma once

#include <string>
#include <vector>

#include "dataplane/openflow/codec.hpp"

namespace sluice::openflow {

void append_features_request(Bytes& out, Xid xid);
void append_desc_request(Bytes& out, Xid xid);
// All entries of one table, or of all.
void append_flow_request(Bytes& out, Xid xid, std::uint8_t table);
void append_meter_config_request(Bytes& out, Xid xid);
void append_query(Bytes& out, Xid xid, Query query, std::string_view text);

struct Features {
    std::uint64_t datapath_id = 0;
    std::uint8_t tables = 0;
};
Decoded<Features> decode_features_reply(MessageView message);

struct PeerDescription {
    std::string software;
    std::string datapath;  // a gateway's name
};
Decoded<PeerDescription> decode_desc_reply(MessageView message);

// Whether more segments of this multipart reply follow.
bool has_more(MessageView multipart_reply);

// Entries that use what no Entry can say are counted in `foreign`, not returned.
struct FlowReply {
    std::vector<Entry> entries;
    std::size_t foreign = 0;
};
Decoded<FlowReply> decode_flow_reply(MessageView message);
struct MeterReply {
    std::vector<Meter> meters;
    std::size_t foreign = 0;
};
Decoded<MeterReply> decode_meter_config_reply(MessageView message);

struct QueryReply {
    Query query = Query::digest;
    std::string_view text;  // of this segment, into the message
};
Decoded<QueryReply> decode_query_reply(MessageView message);
// `text` is that of a digest's reply, all segments of it.
Decoded<std::vector<TableDigest>> decode_digests(std::string_view text);

}  // namespace sluice::openflow
