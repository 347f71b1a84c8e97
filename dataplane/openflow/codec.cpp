// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/codec.hpp"

#include <cstring>

#include "dataplane/openflow/experimenter.hpp"
#include "dataplane/openflow/ovs.hpp"

namespace sluice::openflow {
namespace {

// OFPT_*, OpenFlow 1.3.5 section 7.1.
constexpr std::uint8_t kHello = 0;
constexpr std::uint8_t kError = 1;
constexpr std::uint8_t kEchoRequest = 2;
constexpr std::uint8_t kEchoReply = 3;
constexpr std::uint8_t kBarrierRequest = 20;

Kind kind_of(ofptype type) {
    switch (type) {
        case OFPTYPE_HELLO:
            return Kind::hello;
        case OFPTYPE_ERROR:
            return Kind::error;
        case OFPTYPE_ECHO_REQUEST:
            return Kind::echo_request;
        case OFPTYPE_ECHO_REPLY:
            return Kind::echo_reply;
        case OFPTYPE_FEATURES_REQUEST:
            return Kind::features_request;
        case OFPTYPE_FEATURES_REPLY:
            return Kind::features_reply;
        case OFPTYPE_GET_CONFIG_REQUEST:
            return Kind::get_config_request;
        case OFPTYPE_GET_CONFIG_REPLY:
            return Kind::get_config_reply;
        case OFPTYPE_SET_CONFIG:
            return Kind::set_config;
        case OFPTYPE_BARRIER_REQUEST:
            return Kind::barrier_request;
        case OFPTYPE_BARRIER_REPLY:
            return Kind::barrier_reply;
        case OFPTYPE_ROLE_REQUEST:
            return Kind::role_request;
        case OFPTYPE_ROLE_REPLY:
            return Kind::role_reply;
        case OFPTYPE_GET_ASYNC_REQUEST:
            return Kind::get_async_request;
        case OFPTYPE_SET_ASYNC_CONFIG:
            return Kind::set_async;
        case OFPTYPE_PACKET_OUT:
            return Kind::packet_out;
        case OFPTYPE_PORT_MOD:
            return Kind::port_mod;
        case OFPTYPE_GROUP_MOD:
            return Kind::group_mod;
        case OFPTYPE_TABLE_MOD:
            return Kind::table_mod;
        case OFPTYPE_QUEUE_GET_CONFIG_REQUEST:
            return Kind::queue_config;
        case OFPTYPE_FLOW_MOD:
            return Kind::flow_mod;
        case OFPTYPE_METER_MOD:
            return Kind::meter_mod;
        case OFPTYPE_BUNDLE_CONTROL:
            return Kind::bundle_control;
        case OFPTYPE_BUNDLE_ADD_MESSAGE:
            return Kind::bundle_add;
        case OFPTYPE_DESC_STATS_REQUEST:
            return Kind::desc_request;
        case OFPTYPE_FLOW_STATS_REQUEST:
            return Kind::flow_request;
        case OFPTYPE_AGGREGATE_STATS_REQUEST:
            return Kind::aggregate_request;
        case OFPTYPE_TABLE_STATS_REQUEST:
            return Kind::table_request;
        case OFPTYPE_PORT_STATS_REQUEST:
            return Kind::port_stats_request;
        case OFPTYPE_PORT_DESC_STATS_REQUEST:
            return Kind::port_desc_request;
        case OFPTYPE_QUEUE_STATS_REQUEST:
            return Kind::queue_request;
        case OFPTYPE_TABLE_FEATURES_STATS_REQUEST:
            return Kind::table_features_request;
        case OFPTYPE_GROUP_STATS_REQUEST:
            return Kind::group_request;
        case OFPTYPE_GROUP_DESC_STATS_REQUEST:
            return Kind::group_desc_request;
        case OFPTYPE_GROUP_FEATURES_STATS_REQUEST:
            return Kind::group_features_request;
        case OFPTYPE_METER_STATS_REQUEST:
            return Kind::meter_request;
        case OFPTYPE_METER_CONFIG_STATS_REQUEST:
            return Kind::meter_config_request;
        case OFPTYPE_METER_FEATURES_STATS_REQUEST:
            return Kind::meter_features_request;
        case OFPTYPE_DESC_STATS_REPLY:
            return Kind::desc_reply;
        case OFPTYPE_FLOW_STATS_REPLY:
            return Kind::flow_reply;
        case OFPTYPE_METER_CONFIG_STATS_REPLY:
            return Kind::meter_config_reply;
        default:
            return Kind::other;
    }
}

void append_header_only(Bytes& out, std::uint8_t type, Xid xid) {
    const be32 id{xid.value};
    std::uint8_t message[8] = {kVersion, type, 0, sizeof message};
    std::memcpy(message + 4, &id, sizeof id);
    out.insert(out.end(), message, message + sizeof message);
}

}  // namespace

void silence_library() {
    vlog_set_levels(nullptr, VLF_ANY_DESTINATION, VLL_OFF);
}

Header header(MessageView message) {
    const auto* raw = ovs::as_header(message);
    return {raw->version, raw->type, ovs::swap(raw->length), Xid{ovs::swap(raw->xid)}};
}

Decoded<Kind> classify(MessageView message) {
    const Header head = header(message);
    if (head.length != message.size()) return error::kBadLength;
    if (head.version != kVersion && head.type != kHello && head.type != kError)
        return error::kBadVersion;
    if (const auto ours = classify_experimenter(message)) return *ours;
    ofptype type;
    if (const ofperr error = ofptype_decode(&type, ovs::as_header(message)); error != 0)
        return ovs::to_error(error);
    const Kind kind = kind_of(type);
    if (kind != Kind::other) return kind;
    if (ofpmsg_is_stat_request(ovs::as_header(message))) return Kind::other_multipart_request;
    return ofpmsg_is_stat_reply(ovs::as_header(message)) ? Kind::other_reply : Kind::other;
}

void append_hello(Bytes& out, Xid xid) {
    ofpbuf* hello = ofputil_encode_hello(1U << kVersion);
    ovs::set_xid(hello, xid);
    ovs::append(out, hello);
}

bool hello_admits_us(MessageView hello) {
    std::uint32_t versions = 0;
    // False for a bitmap it cannot read; then the header's version counts, and is included.
    ofputil_decode_hello(ovs::as_header(hello), &versions);
    return (versions >> kVersion & 1U) != 0;
}

void append_echo_request(Bytes& out, Xid xid) {
    append_header_only(out, kEchoRequest, xid);
}

void append_echo_reply(Bytes& out, MessageView request) {
    const std::size_t start = out.size();
    out.insert(out.end(), request.begin(), request.end());
    out[start] = kVersion;
    out[start + 1] = kEchoReply;
}

void append_barrier_request(Bytes& out, Xid xid) {
    append_header_only(out, kBarrierRequest, xid);
}

}  // namespace sluice::openflow
