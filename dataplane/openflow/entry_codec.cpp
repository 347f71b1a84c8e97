// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/entry_codec.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace sluice::openflow::ovs {
namespace {

constexpr std::uint16_t kEtherIpv4 = 0x0800;
constexpr std::uint16_t kEtherIpv6 = 0x86dd;
constexpr std::uint8_t kIcmp = 1;
constexpr std::uint8_t kIcmp6 = 58;
constexpr unsigned kRegisters = 12;        // reg0 to reg11 carry one field each
constexpr unsigned kAddressRegister = 12;  // reg12 to reg15 carry `address`

constexpr Field register_field(unsigned index) {
    return static_cast<Field>(static_cast<unsigned>(Field::source_vpc) + index);
}
static_assert(register_field(kRegisters - 1) == Field::mtu);
static_assert(register_field(kRegisters) == Field::address);

// Bytes on the wire of a field, 16 at most, to and from the low end of 128 bits.
U128 from_bytes(const std::uint8_t* bytes, std::size_t count) {
    U128 result;
    for (std::size_t i = 0; i < count; ++i) {
        result.high = result.high << 8 | result.low >> 56;
        result.low = result.low << 8 | bytes[i];
    }
    return result;
}
void to_bytes(U128 value, std::uint8_t* bytes, std::size_t count) {
    for (std::size_t i = count; i-- > 0;) {
        bytes[i] = static_cast<std::uint8_t>(value.low);
        value.low = value.low >> 8 | value.high << 56;
        value.high >>= 8;
    }
}

eth_addr to_eth(std::uint64_t value) {
    eth_addr result;
    const MacAddress mac = MacAddress::from_value(value);
    std::memcpy(result.ea, mac.bytes.data(), sizeof result.ea);
    return result;
}
std::uint64_t from_eth(const eth_addr& address) {
    MacAddress mac;
    std::memcpy(mac.bytes.data(), address.ea, sizeof address.ea);
    return mac.value();
}
in6_addr to_in6(const U128& value) {
    in6_addr result;
    to_bytes(value, result.s6_addr, 16);
    return result;
}
U128 from_in6(const in6_addr& address) {
    return from_bytes(address.s6_addr, 16);
}

U128 from_v4(ovs_be32 address) {
    return {0, 0xffff00000000ULL | swap(address)};
}
// All ones above a field's own bits, so that an exact match is all ones whatever the width.
U128 widen(std::uint64_t mask, unsigned bits) {
    return {~0ULL, bits >= 64 ? mask : mask | ~0ULL << bits};
}

void set_ip(match& result, Field field, const U128& value, const U128& mask, bool v6) {
    const bool source = field == Field::source_ip;
    if (v6) {
        const in6_addr address = to_in6(value), bits = to_in6(mask);
        source ? match_set_ipv6_src_masked(&result, &address, &bits)
               : match_set_ipv6_dst_masked(&result, &address, &bits);
    } else {
        const auto address = swap(static_cast<std::uint32_t>(value.low));
        const auto bits = swap(static_cast<std::uint32_t>(mask.low));
        source ? match_set_nw_src_masked(&result, address, bits)
               : match_set_nw_dst_masked(&result, address, bits);
    }
}

void encode_field(const MatchField& field, bool v6, match& result) {
    const U128& value = field.value;
    const U128& mask = field.mask;
    const auto low16 = static_cast<std::uint16_t>(value.low);
    switch (field.field) {
        case Field::in_port:
            match_set_in_port(&result, low16);
            break;
        case Field::tunnel_id:
            match_set_tun_id_masked(&result, swap(value.low), swap(mask.low));
            break;
        case Field::ether_type:
            match_set_dl_type(&result, swap(low16));
            break;
        case Field::source_mac:
            match_set_dl_src_masked(&result, to_eth(value.low), to_eth(mask.low));
            break;
        case Field::destination_mac:
            match_set_dl_dst_masked(&result, to_eth(value.low), to_eth(mask.low));
            break;
        case Field::source_ip:
        case Field::destination_ip:
            set_ip(result, field.field, value, mask, v6);
            break;
        case Field::ip_protocol:
            match_set_nw_proto(&result, static_cast<std::uint8_t>(value.low));
            break;
        case Field::icmp_type:
            match_set_icmp_type(&result, static_cast<std::uint8_t>(value.low));
            break;
        case Field::icmp_code:
            match_set_icmp_code(&result, static_cast<std::uint8_t>(value.low));
            break;
        case Field::address: {
            const ovs_u128 bits{.u64 = {.lo = value.low, .hi = value.high}};
            const ovs_u128 care{.u64 = {.lo = mask.low, .hi = mask.high}};
            match_set_xxreg_masked(&result, 3, bits, care);
            break;
        }
        case Field::side:
            match_set_metadata_masked(&result, swap(value.low), swap(mask.low));
            break;
        case Field::nat_gateway:
            match_set_tun_dst_masked(&result, swap(static_cast<std::uint32_t>(value.low)),
                                     swap(static_cast<std::uint32_t>(mask.low)));
            break;
        case Field::setting:
            match_set_pkt_mark_masked(&result, static_cast<std::uint32_t>(value.low),
                                      static_cast<std::uint32_t>(mask.low));
            break;
        default:
            match_set_reg_masked(
                &result,
                static_cast<unsigned>(field.field) - static_cast<unsigned>(Field::source_vpc),
                static_cast<std::uint32_t>(value.low), static_cast<std::uint32_t>(mask.low));
    }
}

bool is_v6(const std::vector<MatchField>& fields) {
    return std::ranges::any_of(fields, [](const MatchField& field) {
        return field.field == Field::ether_type && field.value.low == kEtherIpv6;
    });
}

// Takes what it understands out of a match's masks; what is left is nobody's.
class MatchReader {
  public:
    explicit MatchReader(const match& source) : flow_(source.flow), masks_(source.wc.masks) {}

    Decoded<std::vector<MatchField>> run() {
        read_packet();
        read_ip();
        for (unsigned i = 0; i < kRegisters; ++i)
            take(register_field(i), flow_.regs[i], masks_.regs[i], 32);
        read_address();
        std::uint64_t metadata = swap(masks_.metadata);
        take(Field::side, swap(flow_.metadata), metadata, 64);
        masks_.metadata = 0;
        std::uint64_t number = swap(masks_.tunnel.ip_dst);
        take(Field::nat_gateway, swap(flow_.tunnel.ip_dst), number, 32);
        masks_.tunnel.ip_dst = 0;
        take(Field::setting, flow_.pkt_mark, masks_.pkt_mark, 32);
        if (flow_.packet_type == 0) masks_.packet_type = 0;  // an Ethernet packet
        std::array<std::uint64_t, sizeof(flow) / 8> rest;
        std::memcpy(rest.data(), &masks_, sizeof masks_);
        if (std::ranges::any_of(rest, [](std::uint64_t word) { return word != 0; }))
            return WireError{error::kBadMatchField, "a match on a field that no table has"};
        return std::move(result_);
    }

  private:
    void put(Field field, const U128& value, const U128& mask) {
        result_.push_back({field, value, mask});
    }
    template <class T>
    void take(Field field, std::uint64_t value, T& mask, unsigned bits) {
        if (mask != 0) put(field, U128::of(value), widen(mask, bits));
        mask = 0;
    }

    void read_packet() {
        if (masks_.in_port.ofp_port != 0)
            put(Field::in_port, U128::of(flow_.in_port.ofp_port), U128::ones());
        masks_.in_port.ofp_port = 0;
        std::uint64_t mask = swap(masks_.tunnel.tun_id);
        take(Field::tunnel_id, swap(flow_.tunnel.tun_id), mask, 64);
        masks_.tunnel.tun_id = 0;
        mask = swap(masks_.dl_type);
        take(Field::ether_type, swap(flow_.dl_type), mask, 16);
        masks_.dl_type = 0;
        mask = from_eth(masks_.dl_src);
        take(Field::source_mac, from_eth(flow_.dl_src), mask, 48);
        masks_.dl_src = {};
        mask = from_eth(masks_.dl_dst);
        take(Field::destination_mac, from_eth(flow_.dl_dst), mask, 48);
        masks_.dl_dst = {};
    }

    void read_ip() {
        if (flow_.dl_type == swap(kEtherIpv4)) {
            read_v4(Field::source_ip, flow_.nw_src, masks_.nw_src);
            read_v4(Field::destination_ip, flow_.nw_dst, masks_.nw_dst);
        } else if (flow_.dl_type == swap(kEtherIpv6)) {
            read_v6(Field::source_ip, flow_.ipv6_src, masks_.ipv6_src);
            read_v6(Field::destination_ip, flow_.ipv6_dst, masks_.ipv6_dst);
        } else {
            return;  // an ARP field, or a protocol of nothing, stays in the masks
        }
        const bool v4 = flow_.dl_type == swap(kEtherIpv4);
        take(Field::ip_protocol, flow_.nw_proto, masks_.nw_proto, 8);
        if (flow_.nw_proto != (v4 ? kIcmp : kIcmp6)) return;
        // ICMP's type and code lie where ports do, in their low 8 bits.
        std::uint64_t mask = swap(masks_.tp_src) & 0xff;
        take(Field::icmp_type, swap(flow_.tp_src), mask, 8);
        mask = swap(masks_.tp_dst) & 0xff;
        take(Field::icmp_code, swap(flow_.tp_dst), mask, 8);
        masks_.tp_src = masks_.tp_dst = 0;
    }
    void read_v4(Field field, ovs_be32 value, ovs_be32& mask) {
        if (mask != 0) put(field, from_v4(value), widen(swap(mask), 32));
        mask = 0;
    }
    void read_v6(Field field, const in6_addr& value, in6_addr& mask) {
        const U128 bits = from_in6(mask);
        if (bits != U128{}) put(field, from_in6(value), bits);
        mask = {};
    }

    void read_address() {
        const auto wide = [](const std::uint32_t* registers) {
            return U128{std::uint64_t{registers[0]} << 32 | registers[1],
                        std::uint64_t{registers[2]} << 32 | registers[3]};
        };
        const U128 mask = wide(masks_.regs + kAddressRegister);
        if (mask != U128{}) put(Field::address, wide(flow_.regs + kAddressRegister), mask);
        std::fill_n(masks_.regs + kAddressRegister, 4, 0U);
    }

    const flow& flow_;
    flow masks_;
    std::vector<MatchField> result_;
};

// The field that a set-field action writes.
std::optional<Field> field_of(mf_field_id id) {
    if (id >= MFF_REG0 && id < MFF_REG0 + static_cast<int>(kRegisters))
        return register_field(static_cast<unsigned>(id - MFF_REG0));
    switch (id) {
        case MFF_TUN_ID:
            return Field::tunnel_id;
        case MFF_METADATA:
            return Field::side;
        case MFF_TUN_DST:
            return Field::nat_gateway;
        case MFF_PKT_MARK:
            return Field::setting;
        case MFF_ETH_SRC:
            return Field::source_mac;
        case MFF_ETH_DST:
            return Field::destination_mac;
        case MFF_IPV4_SRC:
        case MFF_IPV6_SRC:
            return Field::source_ip;
        case MFF_IPV4_DST:
        case MFF_IPV6_DST:
            return Field::destination_ip;
        case MFF_XXREG3:
            return Field::address;
        default:
            return std::nullopt;
    }
}

bool is_exact(const ofpact_set_field& act) {
    const auto* mask = reinterpret_cast<const std::uint8_t*>(ofpact_set_field_mask(&act));
    return std::all_of(mask, mask + act.field->n_bytes,
                       [](std::uint8_t byte) { return byte == 0xff; });
}

Decoded<SetField> decode_set(const ofpact_set_field& act) {
    const auto field = field_of(act.field->id);
    if (!field) return WireError{error::kBadSetType, "sets a field that no table sets"};
    if (!is_exact(act)) return WireError{error::kBadSetArgument, "sets some bits of a field only"};
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(act.value);
    const auto id = act.field->id;
    if (id == MFF_IPV4_SRC || id == MFF_IPV4_DST)
        return SetField{*field, {0, 0xffff00000000ULL | from_bytes(bytes, 4).low}};
    return SetField{*field, from_bytes(bytes, act.field->n_bytes)};
}

}  // namespace

mf_field_id carrier(Field field, bool v6) {
    switch (field) {
        case Field::in_port:
            return MFF_IN_PORT_OXM;
        case Field::tunnel_id:
            return MFF_TUN_ID;
        case Field::ether_type:
            return MFF_ETH_TYPE;
        case Field::source_mac:
            return MFF_ETH_SRC;
        case Field::destination_mac:
            return MFF_ETH_DST;
        case Field::source_ip:
            return v6 ? MFF_IPV6_SRC : MFF_IPV4_SRC;
        case Field::destination_ip:
            return v6 ? MFF_IPV6_DST : MFF_IPV4_DST;
        case Field::ip_protocol:
            return MFF_IP_PROTO;
        case Field::icmp_type:
            return v6 ? MFF_ICMPV6_TYPE : MFF_ICMPV4_TYPE;
        case Field::icmp_code:
            return v6 ? MFF_ICMPV6_CODE : MFF_ICMPV4_CODE;
        case Field::address:
            return MFF_XXREG3;
        case Field::side:
            return MFF_METADATA;
        case Field::nat_gateway:
            return MFF_TUN_DST;
        case Field::setting:
            return MFF_PKT_MARK;
        default:
            return static_cast<mf_field_id>(MFF_REG0 + static_cast<int>(field) -
                                            static_cast<int>(Field::source_vpc));
    }
}

void encode_match(const std::vector<MatchField>& fields, match& result) {
    match_init_catchall(&result);
    const bool v6 = is_v6(fields);
    for (const MatchField& field : fields) encode_field(field, v6, result);
}

Decoded<std::vector<MatchField>> decode_match(const match& source) {
    return MatchReader(source).run();
}

void encode_instructions(const Entry& entry, ofpbuf* acts) {
    if (entry.meter) {
        ofpact_meter* meter = ofpact_put_METER(acts);
        meter->meter_id = entry.meter.value;
        meter->provider_meter_id = UINT32_MAX;
    }
    for (const SetField& set : entry.set) {
        const bool ip = set.field == Field::source_ip || set.field == Field::destination_ip;
        const mf_field* field = mf_from_id(carrier(set.field, ip && !set.value.to_ip().is_v4()));
        std::uint8_t value[16];
        std::uint8_t mask[16];
        to_bytes(set.value, value, field->n_bytes);
        std::memset(mask, 0xff, field->n_bytes);
        ofpact_put_set_field(acts, field, value, mask);
    }
    if (entry.next) ofpact_put_GOTO_TABLE(acts)->table_id = *entry.next;
}

Decoded<bool> decode_instructions(const ofpact* acts, std::size_t length, Entry& entry) {
    const ofpact* act;
    OFPACT_FOR_EACH(act, acts, length) {
        switch (act->type) {
            case OFPACT_METER:
                entry.meter = MeterId{reinterpret_cast<const ofpact_meter*>(act)->meter_id};
                break;
            case OFPACT_GOTO_TABLE:
                entry.next = reinterpret_cast<const ofpact_goto_table*>(act)->table_id;
                break;
            case OFPACT_SET_FIELD: {
                auto set = decode_set(*reinterpret_cast<const ofpact_set_field*>(act));
                if (!set) return set.error();
                entry.set.push_back(*set);
                break;
            }
            case OFPACT_WRITE_METADATA:
            case OFPACT_WRITE_ACTIONS:
            case OFPACT_CLEAR_ACTIONS:
                return WireError{error::kUnsupportedInstruction,
                                 std::string("an entry cannot ") + ofpact_name(act->type)};
            default:
                return WireError{error::kBadActionType,
                                 std::string("an entry cannot ") + ofpact_name(act->type)};
        }
    }
    return true;
}

}  // namespace sluice::openflow::ovs
