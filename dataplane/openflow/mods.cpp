// SPDX-License-Identifier: Apache-2.0
// Modifications: OFPT_FLOW_MOD, OFPT_METER_MOD and, of ONF extension 230, the bundles.
#include <array>

#include "dataplane/openflow/codec.hpp"
#include "dataplane/openflow/entry_codec.hpp"

namespace sluice::openflow {
namespace {

using ovs::swap;

constexpr std::uint32_t kLargestMeter = 0xffff0000;  // OFPM_MAX
constexpr std::uint32_t kAllMetersWire = 0xffffffff;
constexpr std::size_t kHeader = 8;
constexpr std::uint8_t kExperimenterMessage = 4;
// Header, experimenter, its type, bundle, 2 of padding, flags: then the inner message.
constexpr std::size_t kBundleAddHeader = 24;
constexpr std::uint32_t kBundleAddType = 2301;

Decoded<FlowMod> to_mod(const ofputil_flow_mod& raw, const match& matched) {
    if (raw.idle_timeout != 0 || raw.hard_timeout != 0)
        return WireError{error::kBadTimeout, "entries do not expire"};
    if ((raw.flags & OFPUTIL_FF_SEND_FLOW_REM) != 0)
        return WireError{error::kBadFlags, "entries do not announce their removal"};
    FlowMod mod;
    mod.command = static_cast<ModCommand>(raw.command);
    const bool removes =
        mod.command == ModCommand::remove || mod.command == ModCommand::remove_strict;
    if (!removes && raw.buffer_id != UINT32_MAX)
        return WireError{error::kBufferUnknown, "no packet is buffered"};
    mod.all_tables = raw.table_id == kAllTables;
    mod.check_overlap = (raw.flags & OFPUTIL_FF_CHECK_OVERLAP) != 0;
    mod.output_filter = removes && (raw.out_port != OFPP_ANY || raw.out_group != OFPG_ANY);
    mod.cookie = swap(raw.cookie);
    mod.cookie_mask = swap(raw.cookie_mask);
    auto fields = ovs::decode_match(matched);
    if (!fields) return fields.error();
    mod.entry.key = {raw.table_id, static_cast<std::uint16_t>(raw.priority), *std::move(fields)};
    if (mod.command == ModCommand::add) mod.entry.cookie = Cookie{swap(raw.new_cookie)};
    if (!removes)
        if (auto done = ovs::decode_instructions(raw.ofpacts, raw.ofpacts_len, mod.entry); !done)
            return done.error();
    return mod;
}

Decoded<Meter> to_meter(const ofputil_meter_config& config) {
    if (config.meter_id == 0 || config.meter_id > kLargestMeter)
        return WireError{error::kInvalidMeter, "meters are numbered from 1"};
    if ((config.flags & ~(OFPMF13_KBPS | OFPMF13_BURST | OFPMF13_STATS)) != 0 ||
        (config.flags & OFPMF13_KBPS) == 0)
        return WireError{error::kBadMeterFlags, "meters count kbit/s"};
    if (config.n_bands != 1 || config.bands[0].type != OFPMBT13_DROP)
        return WireError{error::kBadBand, "a meter has one band, which drops"};
    if (config.bands[0].rate == 0) return WireError{error::kBadRate, "a meter needs a rate"};
    return Meter{MeterId{config.meter_id}, config.bands[0].rate,
                 (config.flags & OFPMF13_BURST) != 0 ? config.bands[0].burst_size : 0};
}

template <class Mod, class Append>
void wrap(Bytes& out, Xid xid, std::uint32_t bundle, const Mod& mod, Append append) {
    const std::size_t start = out.size();
    out.resize(start + kBundleAddHeader);
    append(out, xid, mod);
    const auto length = static_cast<std::uint16_t>(out.size() - start);
    std::array<std::uint32_t, kBundleAddHeader / 4> words{};
    words[0] = std::uint32_t{kVersion} << 24 | std::uint32_t{kExperimenterMessage} << 16 | length;
    words[1] = xid.value;
    words[2] = kOnfExperimenter;
    words[3] = kBundleAddType;
    words[4] = bundle;
    words[5] = kBundleOrdered | kBundleAtomic;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const be32 word{words[i]};
        std::memcpy(out.data() + start + 4 * i, &word, sizeof word);
    }
}

std::uint32_t word(MessageView message, std::size_t offset) {
    be32 result;
    std::memcpy(&result, message.data() + offset, sizeof result);
    return result.host();
}

}  // namespace

Decoded<FlowMod> decode_flow_mod(MessageView message) {
    ofputil_flow_mod raw;
    ovs::Buffer acts;
    const ofperr error =
        ofputil_decode_flow_mod(&raw, ovs::as_header(message), ovs::kProtocol, nullptr, nullptr,
                                acts.get(), UINT16_MAX, UINT8_MAX);
    if (error != 0) return ovs::to_error(error);
    match matched;
    minimatch_expand(&raw.match, &matched);
    minimatch_destroy(&raw.match);
    return to_mod(raw, matched);
}

void append_flow_mod(Bytes& out, Xid xid, const FlowMod& mod) {
    ovs::Buffer acts;
    const bool removes =
        mod.command == ModCommand::remove || mod.command == ModCommand::remove_strict;
    if (!removes) ovs::encode_instructions(mod.entry, acts.get());
    match matched;
    ovs::encode_match(mod.entry.key.match, matched);
    ofputil_flow_mod raw{};
    minimatch_init(&raw.match, &matched);
    raw.priority = mod.entry.key.priority;
    raw.cookie = swap(mod.cookie);
    raw.cookie_mask = swap(mod.cookie_mask);
    raw.new_cookie = swap(mod.entry.cookie.value);
    raw.table_id = mod.all_tables ? kAllTables : mod.entry.key.table;
    raw.command = static_cast<std::uint16_t>(mod.command);
    raw.buffer_id = UINT32_MAX;
    raw.out_port = OFPP_ANY;
    raw.out_group = OFPG_ANY;
    if (mod.check_overlap) raw.flags = OFPUTIL_FF_CHECK_OVERLAP;
    raw.ofpacts = acts.acts();
    raw.ofpacts_len = acts.size();
    ofpbuf* message = ofputil_encode_flow_mod(&raw, ovs::kProtocol);
    minimatch_destroy(&raw.match);
    ovs::set_xid(message, xid);
    ovs::append(out, message);
}

Decoded<MeterMod> decode_meter_mod(MessageView message) {
    ofputil_meter_mod raw;
    ovs::Buffer bands;
    const ofperr error = ofputil_decode_meter_mod(ovs::as_header(message), &raw, bands.get());
    if (error != 0) return ovs::to_error(error);
    MeterMod mod;
    mod.command = static_cast<MeterCommand>(raw.command);
    if (mod.command == MeterCommand::remove) {
        mod.all = raw.meter.meter_id == kAllMetersWire;
        mod.meter.id = MeterId{raw.meter.meter_id};
        if (!mod.all && (raw.meter.meter_id == 0 || raw.meter.meter_id > kLargestMeter))
            return WireError{error::kInvalidMeter, "meters are numbered from 1"};
        return mod;
    }
    auto meter = to_meter(raw.meter);
    if (!meter) return meter.error();
    mod.meter = *meter;
    return mod;
}

void append_meter_mod(Bytes& out, Xid xid, const MeterMod& mod) {
    ofputil_meter_band band{.type = OFPMBT13_DROP,
                            .prec_level = 0,
                            .rate = mod.meter.rate_kbps,
                            .burst_size = mod.meter.burst_kbit};
    ofputil_meter_mod raw{};
    raw.command = static_cast<std::uint16_t>(mod.command);
    raw.meter.meter_id = mod.all ? kAllMetersWire : mod.meter.id.value;
    raw.meter.flags = OFPMF13_KBPS | OFPMF13_BURST | OFPMF13_STATS;
    raw.meter.n_bands = mod.command == MeterCommand::remove ? 0 : 1;
    raw.meter.bands = &band;
    ofpbuf* message = ofputil_encode_meter_mod(OFP13_VERSION, &raw);
    ovs::set_xid(message, xid);
    ovs::append(out, message);
}

Decoded<BundleControl> decode_bundle_control(MessageView message) {
    ofputil_bundle_ctrl_msg raw;
    const ofperr error = ofputil_decode_bundle_ctrl(ovs::as_header(message), &raw);
    if (error != 0) return ovs::to_error(error);
    if (raw.type > static_cast<std::uint16_t>(BundleType::discard_reply))
        return WireError{error::kBundleBadType, "a bundle control of no known type"};
    return BundleControl{raw.bundle_id, static_cast<BundleType>(raw.type), raw.flags};
}

void append_bundle_control(Bytes& out, Xid xid, const BundleControl& control) {
    ofputil_bundle_ctrl_msg raw{.bundle_id = control.bundle,
                                .type = static_cast<std::uint16_t>(control.type),
                                .flags = control.flags};
    ofpbuf* message = ofputil_encode_bundle_ctrl_request(OFP13_VERSION, &raw);
    ovs::set_xid(message, xid);
    ovs::append(out, message);
}

std::uint32_t bundle_of(MessageView bundle_add) {
    return word(bundle_add, 16);
}

// By hand: the library's decoder refuses meters in bundles.
Decoded<BundleAdd> decode_bundle_add(MessageView message) {
    BundleAdd result;
    result.bundle = bundle_of(message);
    result.flags = static_cast<std::uint16_t>(word(message, 20));
    const MessageView inner = message.subspan(kBundleAddHeader);
    if (inner.size() < kHeader) return error::kBundleBadLength;
    const Header head = header(inner);
    if (head.version != kVersion) return error::kBadVersion;
    // What follows the inner message is padding and properties, of which there are none.
    if (head.length < kHeader || head.length > inner.size()) return error::kBundleBadLength;
    if (head.xid != header(message).xid) return error::kBundleBadXid;
    result.inner = inner.first(head.length);
    const auto kind = classify(result.inner);
    if (!kind) return WireError{error::kBundleUnsupported, kind.error().message};
    if (*kind != Kind::flow_mod && *kind != Kind::meter_mod)
        return WireError{error::kBundleUnsupported, "a bundle holds flow and meter modifications"};
    result.inner_kind = *kind;
    return result;
}

void append_bundled(Bytes& out, Xid xid, std::uint32_t bundle, const FlowMod& mod) {
    wrap(out, xid, bundle, mod, append_flow_mod);
}

void append_bundled(Bytes& out, Xid xid, std::uint32_t bundle, const MeterMod& mod) {
    wrap(out, xid, bundle, mod, append_meter_mod);
}

}  // namespace sluice::openflow
