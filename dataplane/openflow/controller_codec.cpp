// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/controller_codec.hpp"

#include <cstring>

#include "dataplane/openflow/entry_codec.hpp"

namespace sluice::openflow {
namespace {

using ovs::swap;

void append_request(Bytes& out, Xid xid, ofpraw type) {
    ovs::append(out, ofpraw_alloc_xid(type, OFP13_VERSION, swap(xid.value), 0));
}

template <std::size_t N>
std::string text(const char (&field)[N]) {
    return {field, strnlen(field, N)};
}

std::optional<Entry> to_entry(const ofputil_flow_stats& raw) {
    Entry entry;
    auto fields = ovs::decode_match(raw.match);
    if (!fields) return std::nullopt;
    entry.key = {raw.table_id, raw.priority, *std::move(fields)};
    entry.cookie = Cookie{swap(raw.cookie)};
    if (!ovs::decode_instructions(raw.ofpacts, raw.ofpacts_len, entry)) return std::nullopt;
    return entry;
}

}  // namespace

void append_features_request(Bytes& out, Xid xid) {
    append_request(out, xid, OFPRAW_OFPT_FEATURES_REQUEST);
}

void append_desc_request(Bytes& out, Xid xid) {
    append_request(out, xid, OFPRAW_OFPST_DESC_REQUEST);
}

void append_flow_request(Bytes& out, Xid xid, std::uint8_t table) {
    ofputil_flow_stats_request raw{};
    match_init_catchall(&raw.match);
    raw.out_port = OFPP_ANY;
    raw.out_group = OFPG_ANY;
    raw.table_id = table;
    ofpbuf* message = ofputil_encode_flow_stats_request(&raw, ovs::kProtocol);
    ovs::set_xid(message, xid);
    ovs::append(out, message);
}

void append_meter_config_request(Bytes& out, Xid xid) {
    ofpbuf* message = ofputil_encode_meter_request(OFP13_VERSION, OFPUTIL_METER_CONFIG, UINT32_MAX);
    ovs::set_xid(message, xid);
    ovs::append(out, message);
}

Decoded<Features> decode_features_reply(MessageView message) {
    ofpbuf buffer;
    ofpbuf_use_const(&buffer, message.data(), message.size());
    ofputil_switch_features raw;
    const ofperr error = ofputil_pull_switch_features(&buffer, &raw);
    if (error != 0) return ovs::to_error(error);
    return Features{raw.datapath_id, raw.n_tables};
}

Decoded<PeerDescription> decode_desc_reply(MessageView message) {
    ofpbuf buffer;
    ofpbuf_use_const(&buffer, message.data(), message.size());
    ofpraw_pull_assert(&buffer);
    ofp_desc_stats raw;
    if (buffer.size < sizeof raw) return error::kBadLength;
    std::memcpy(&raw, buffer.data, sizeof raw);
    return PeerDescription{text(raw.sw_desc), text(raw.dp_desc)};
}

Decoded<FlowReply> decode_flow_reply(MessageView message) {
    FlowReply result;
    ofpbuf buffer;
    ofpbuf_use_const(&buffer, message.data(), message.size());
    for (;;) {
        ovs::Buffer acts;
        ofputil_flow_stats raw;
        const int status = ofputil_decode_flow_stats_reply(&raw, &buffer, false, acts.get());
        if (status == EOF) return result;
        if (status != 0) return WireError{error::kBadLength, "a malformed entry in a flow reply"};
        if (auto entry = to_entry(raw))
            result.entries.push_back(*std::move(entry));
        else
            ++result.foreign;
    }
}

Decoded<MeterReply> decode_meter_config_reply(MessageView message) {
    MeterReply result;
    ofpbuf buffer;
    ofpbuf_use_const(&buffer, message.data(), message.size());
    for (;;) {
        ovs::Buffer bands;
        ofputil_meter_config raw;
        const int status = ofputil_decode_meter_config(&buffer, &raw, bands.get());
        if (status == EOF) return result;
        if (status != 0) return WireError{error::kBadLength, "a malformed meter in a meter reply"};
        if ((raw.flags & OFPMF13_KBPS) == 0 || raw.n_bands != 1 ||
            raw.bands[0].type != OFPMBT13_DROP)
            ++result.foreign;
        else
            result.meters.push_back(
                {MeterId{raw.meter_id}, raw.bands[0].rate, raw.bands[0].burst_size});
    }
}

}  // namespace sluice::openflow
