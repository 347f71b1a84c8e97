// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/switch_codec.hpp"

#include <algorithm>
#include <cstring>

#include "dataplane/openflow/entry_codec.hpp"

namespace sluice::openflow {
namespace {

using ovs::as_header;
using ovs::swap;

constexpr std::size_t kMultipartHeader = 16;

// Copies text into a fixed field of a message and ends it with a zero.
template <std::size_t N>
void copy_text(char (&to)[N], std::string_view text) {
    const std::size_t length = std::min(text.size(), N - 1);
    std::memcpy(to, text.data(), length);
    std::memset(to + length, 0, N - length);
}

ofputil_phy_port to_port(const PortInfo& port) {
    constexpr std::uint32_t kMegabit = 1000;  // in kbit/s
    ofputil_phy_port result{};
    result.port_no = static_cast<std::uint16_t>(port.port.value);
    std::memcpy(result.hw_addr.ea, port.mac.bytes.data(), port.mac.bytes.size());
    copy_text(result.name, port.name);
    result.state = port.link_up ? OFPUTIL_PS_LIVE : OFPUTIL_PS_LINK_DOWN;
    result.curr_speed = result.max_speed = port.speed_mbps * kMegabit;
    return result;
}

}  // namespace

Decoded<FlowRequest> decode_flow_request(MessageView message) {
    ofputil_flow_stats_request raw;
    const ofperr error =
        ofputil_decode_flow_stats_request(&raw, as_header(message), nullptr, nullptr);
    if (error != 0) return ovs::to_error(error);
    auto fields = ovs::decode_match(raw.match);
    if (!fields) return fields.error();
    return FlowRequest{raw.table_id, *std::move(fields), swap(raw.cookie), swap(raw.cookie_mask),
                       raw.out_port != OFPP_ANY || raw.out_group != OFPG_ANY};
}

Decoded<std::uint32_t> decode_port_request(MessageView message) {
    ofp_port_t port;
    const ofperr error = ofputil_decode_port_stats_request(as_header(message), &port);
    if (error != 0) return ovs::to_error(error);
    return port == OFPP_ANY ? kAllPorts : std::uint32_t{port};
}

std::uint32_t decode_meter_request(MessageView message) {
    std::uint32_t meter = 0;
    ofputil_decode_meter_request(as_header(message), &meter);
    return meter;
}

Decoded<RoleRequest> decode_role_request(MessageView message) {
    ofputil_role_request raw;
    const ofperr error = ofputil_decode_role_message(as_header(message), &raw);
    if (error != 0) return ovs::to_error(error);
    return RoleRequest{static_cast<Role>(raw.role), raw.generation_id};
}

bool has_body(MessageView multipart_request) {
    return multipart_request.size() > kMultipartHeader;
}

void append_features_reply(Bytes& out, MessageView request, std::uint64_t datapath_id,
                           std::uint8_t tables) {
    ofputil_switch_features features{};
    features.datapath_id = datapath_id;
    features.n_tables = tables;
    features.capabilities = static_cast<ofputil_capabilities>(
        OFPUTIL_C_FLOW_STATS | OFPUTIL_C_TABLE_STATS | OFPUTIL_C_PORT_STATS | OFPUTIL_C_BUNDLES);
    ovs::append(out,
                ofputil_encode_switch_features(&features, ovs::kProtocol, as_header(request)->xid));
}

void append_config_reply(Bytes& out, MessageView request, const SwitchConfig& config) {
    ofputil_switch_config raw{};
    raw.frag = static_cast<ofputil_frag_handling>(config.flags);
    raw.invalid_ttl_to_controller = -1;
    raw.miss_send_len = config.miss_send_len;
    ovs::append(out, ofputil_encode_get_config_reply(as_header(request), &raw));
}

Decoded<SwitchConfig> decode_set_config(MessageView message) {
    ofputil_switch_config raw;
    const ofperr error = ofputil_decode_set_config(as_header(message), &raw);
    if (error != 0) return ovs::to_error(error);
    // Fragments follow their connection; the gateway has no other way of treating them.
    if (raw.frag != OFPUTIL_FRAG_NORMAL) return error::kBadConfigFlags;
    return SwitchConfig{0, raw.miss_send_len};
}

void append_role_reply(Bytes& out, MessageView request, const RoleRequest& role) {
    ofputil_role_request raw{};
    raw.role = static_cast<ofp12_controller_role>(role.role);
    raw.have_generation_id = true;
    raw.generation_id = role.generation;
    ovs::append(out, ofputil_encode_role_reply(as_header(request), &raw));
}

void append_barrier_reply(Bytes& out, MessageView request) {
    ovs::append(out, ofpraw_alloc_xid(OFPRAW_OFPT11_BARRIER_REPLY, OFP13_VERSION,
                                      as_header(request)->xid, 0));
}

void append_bundle_reply(Bytes& out, MessageView request, const BundleControl& control) {
    ofputil_bundle_ctrl_msg raw{.bundle_id = control.bundle,
                                .type = static_cast<std::uint16_t>(control.type),
                                .flags = control.flags};
    ovs::append(out, ofputil_encode_bundle_ctrl_reply(as_header(request), &raw));
}

void append_desc_reply(Bytes& out, MessageView request, const Description& description) {
    ofpbuf* reply = ofpraw_alloc_stats_reply(as_header(request), 0);
    auto* raw = static_cast<ofp_desc_stats*>(ofpbuf_put_zeros(reply, sizeof(ofp_desc_stats)));
    copy_text(raw->mfr_desc, description.manufacturer);
    copy_text(raw->hw_desc, description.hardware);
    copy_text(raw->sw_desc, description.software);
    copy_text(raw->serial_num, description.serial);
    copy_text(raw->dp_desc, description.datapath);
    ovs::append(out, reply);
}

void append_ports_reply(Bytes& out, MessageView request, std::span<const PortInfo> ports) {
    ovs::Multipart reply(request);
    for (const PortInfo& port : ports) {
        const ofputil_phy_port raw = to_port(port);
        ofputil_append_port_desc_stats_reply(&raw, reply.get());
    }
    reply.append_to(out);
}

void append_port_stats_reply(Bytes& out, MessageView request, std::span<const PortInfo> ports) {
    ovs::Multipart reply(request);
    for (const PortInfo& port : ports) {
        ofputil_port_stats raw{};
        std::memset(&raw.stats, 0xff, sizeof raw.stats);  // all ones: not known
        raw.port_no = static_cast<std::uint16_t>(port.port.value);
        raw.stats.rx_packets = port.rx_packets;
        raw.stats.tx_packets = port.tx_packets;
        raw.stats.rx_bytes = port.rx_bytes;
        raw.stats.tx_bytes = port.tx_bytes;
        raw.stats.rx_dropped = port.rx_dropped;
        raw.stats.tx_dropped = port.tx_dropped;
        raw.duration_sec = raw.duration_nsec = UINT32_MAX;
        ofputil_append_port_stat(reply.get(), &raw);
    }
    reply.append_to(out);
}

void append_table_stats_reply(Bytes& out, MessageView request, std::span<const TableStats> tables) {
    ofpbuf* reply = ofputil_encode_table_stats_reply(as_header(request));
    for (const TableStats& table : tables) {
        ofputil_table_features features{};
        features.table_id = table.table;
        const ofputil_table_stats raw{.table_id = table.table,
                                      .active_count = table.entries,
                                      .lookup_count = UINT64_MAX,
                                      .matched_count = UINT64_MAX};
        ofputil_append_table_stats_reply(reply, &raw, &features);
    }
    ovs::append(out, reply);
}

void append_aggregate_reply(Bytes& out, MessageView request, const EntryStats& sum,
                            std::uint32_t entries) {
    const ofputil_aggregate_stats raw{
        .packet_count = sum.packets, .byte_count = sum.bytes, .flow_count = entries};
    const std::size_t start = out.size();
    ovs::append(out, ofputil_encode_aggregate_stats_reply(&raw, as_header(request)));
    if (sum.packets == kNotCounted)
        std::memset(out.data() + start + kMultipartHeader, 0xff, 2 * sizeof sum.packets);
}

void append_meter_features_reply(Bytes& out, MessageView request, std::uint32_t capacity) {
    const ofputil_meter_features raw{.max_meters = capacity,
                                     .band_types = 1U << OFPMBT13_DROP,
                                     .capabilities = OFPMF13_KBPS | OFPMF13_BURST,
                                     .max_bands = 1,
                                     .max_color = 0};
    ovs::append(out, ofputil_encode_meter_features_reply(&raw, as_header(request)));
}

void append_empty_reply(Bytes& out, MessageView request, std::size_t zeros) {
    ovs::Multipart reply(request);
    ofpbuf_put_zeros(reply.last(), zeros);
    reply.append_to(out);
}

struct RecordWriter::State {
    Bytes request;  // its copy: segments are made from it as the reply grows
    std::optional<ovs::Multipart> reply;

    ovs_list* segments() {
        if (!reply) reply.emplace(request);
        return reply->get();
    }
};

RecordWriter::RecordWriter(MessageView request) : state_(std::make_unique<State>()) {
    state_->request.assign(request.begin(), request.end());
}

RecordWriter::~RecordWriter() = default;

void RecordWriter::append(const Entry& entry, const EntryStats& stats) {
    ovs::Buffer acts;
    ovs::encode_instructions(entry, acts.get());
    ofputil_flow_stats raw{};
    ovs::encode_match(entry.key.match, raw.match);
    raw.cookie = swap(entry.cookie.value);
    raw.table_id = entry.key.table;
    raw.priority = entry.key.priority;
    constexpr std::int64_t kSecond = 1'000'000'000;
    raw.duration_sec = static_cast<std::uint32_t>(stats.age.count() / kSecond);
    raw.duration_nsec = static_cast<std::uint32_t>(stats.age.count() % kSecond);
    raw.idle_age = raw.hard_age = -1;
    raw.packet_count = stats.packets;
    raw.byte_count = stats.bytes;
    raw.ofpacts = acts.acts();
    raw.ofpacts_len = acts.size();
    // The library says zero for what is not counted. The record is the last of the last segment,
    // which may be a new one.
    ovs_list* segments = state_->segments();
    const ofpbuf* before = state_->reply->last();
    const std::size_t end = before->size;
    ofputil_append_flow_stats_reply(&raw, segments, nullptr);
    ofpbuf* last = state_->reply->last();
    constexpr std::size_t kPackets = 32;  // and octets behind it: OpenFlow 1.3.5 section 7.3.5.2
    auto* record =
        static_cast<std::uint8_t*>(last->data) + (last == before ? end : kMultipartHeader);
    if (stats.packets == kNotCounted)
        std::memset(record + kPackets, 0xff, 2 * sizeof stats.packets);
}

void RecordWriter::append_config(const Meter& meter) {
    ofputil_meter_band band{.type = OFPMBT13_DROP,
                            .prec_level = 0,
                            .rate = meter.rate_kbps,
                            .burst_size = meter.burst_kbit};
    const ofputil_meter_config raw{.meter_id = meter.id.value,
                                   .flags = OFPMF13_KBPS | OFPMF13_BURST,
                                   .n_bands = 1,
                                   .bands = &band};
    ofputil_append_meter_config(state_->segments(), &raw);
}

void RecordWriter::append_stats(const Meter& meter) {
    // What a meter let through is not counted by the meter: all ones, not known.
    ofputil_meter_band_stats band{.packet_count = UINT64_MAX, .byte_count = UINT64_MAX};
    ofputil_meter_stats raw{};
    raw.meter_id = meter.id.value;
    raw.flow_count = UINT32_MAX;
    raw.packet_in_count = raw.byte_in_count = UINT64_MAX;
    raw.n_bands = 1;
    raw.bands = &band;
    ofputil_append_meter_stats(state_->segments(), &raw);
}

void RecordWriter::take(Bytes& out, bool more) {
    state_->segments();
    const std::size_t start = out.size();
    state_->reply->append_to(out);
    state_->reply.reset();
    if (!more) return;
    // The library marks all segments of a list but the last: mark that one too.
    for (std::size_t at = start; at < out.size();) {
        out[at + 11] |= 1;  // OFPMPF_REPLY_MORE
        at += static_cast<std::size_t>(out[at + 2]) << 8 | out[at + 3];
    }
}

}  // namespace sluice::openflow
