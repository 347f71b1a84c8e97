// SPDX-License-Identifier: Apache-2.0
#include "nfv/gateway_address/function.hpp"

#include <map>

#include "nfv/gateway_address/table.hpp"

namespace sluice::nfv {
namespace {

using namespace policy;

// A gateway's address in its subnet.
struct GatewayRecord {
    using Traits = KeyedTraits<GatewayRecord, AddressKey>;
    AddressKey key;
    SubnetKey subnet;
};

struct State : FunctionState {
    PersistentMap<GatewayRecord> gateways;
};

const State& typed(const FunctionState& state) {
    return static_cast<const State&>(state);
}

void drop(WalkState& walk, DropReason reason) {
    walk.drop(openflow::kLocal, reason);
}

// The subnet whose gateway has the address, if it is one.
const SubnetRecord* gateway_at(const State& state, const WalkState& walk,
                               const IpAddress& address) {
    const GatewayRecord* record = state.gateways.find({walk.plan.source_vpc, address});
    return record == nullptr ? nullptr : walk.snapshot.core.subnets.find(record->subnet);
}

// ARP (RFC 826) and neighbour solicitation (RFC 4861 7.2.3): who has `target`? Answered for the
// sender's subnet only, and never to the one who has it: that would look like a duplicate
// (RFC 5227 2.1.1, RFC 4862 5.4.4).
void resolve(const State& state, WalkState& walk, const IpAddress& target, Answer how,
             DropReason nobody) {
    if (const SubnetRecord* gateway = gateway_at(state, walk, target)) {
        if (gateway->key.subnet != walk.source->subnet) return drop(walk, nobody);
        return walk.answer(openflow::kLocal, how, target, gateway->mac, gateway->cookie);
    }
    const EndpointRecord* owner = walk.snapshot.core.endpoints.find({walk.plan.source_vpc, target});
    if (owner == nullptr || owner->subnet != walk.source->subnet) return drop(walk, nobody);
    if (owner->endpoint == walk.source->endpoint) return drop(walk, DropReason::nothing_to_answer);
    // From the gateway's address: who is asked for is no router (the R flag, RFC 4861 4.4).
    walk.answer(openflow::kEndpoint, how, walk.source_subnet->gateway, owner->mac, owner->cookie);
}

bool is_discovery(const Packet& packet) {
    return packet.kind == EtherKind::ipv6 &&
           packet.tuple.protocol == static_cast<std::uint8_t>(Protocol::icmpv6) &&
           packet.icmp_type >= 133 && packet.icmp_type <= 137;
}

// RFC 4861. What a tenant may not say (router advertisements, redirects) goes nowhere.
void discover(const State& state, WalkState& walk) {
    switch (walk.packet.icmp_type) {
        case 135:
            return resolve(state, walk, walk.packet.nd_target, Answer::neighbour_advert,
                           DropReason::inner_nd);
        case 133:
        case 136:
            return drop(walk, DropReason::nothing_to_answer);
        default:
            return drop(walk, DropReason::inner_nd);
    }
}

bool is_subnet_broadcast(const SubnetRecord& subnet, const IpAddress& address) {
    if (!address.is_v4() || subnet.prefix_length >= 127) return false;
    const std::uint32_t host_bits = (1U << (128 - subnet.prefix_length)) - 1;
    return subnet.block().contains(address) && (address.to_v4().host() & host_bits) == host_bits;
}

void judge_local(const FunctionState& function, WalkState& walk) {
    const State& state = typed(function);
    const Packet& packet = walk.packet;
    const IpAddress& destination = packet.tuple.destination;
    if (packet.kind == EtherKind::arp)
        return resolve(state, walk, destination, Answer::arp_reply, DropReason::inner_arp);
    if (is_discovery(packet)) return discover(state, walk);

    if (destination.is_multicast()) return drop(walk, DropReason::inner_multicast);
    if (destination == IpAddress::v4(be32{0xffffffff}) ||
        is_subnet_broadcast(*walk.source_subnet, destination))
        return drop(walk, DropReason::inner_broadcast);
    if (packet.destination_mac.is_multicast())  // RFC 1122 3.3.6: not with a unicast address
        return drop(walk, packet.destination_mac.value() == 0xffffffffffff
                              ? DropReason::inner_broadcast
                              : DropReason::inner_multicast);

    const SubnetRecord* gateway = gateway_at(state, walk, destination);
    if (gateway == nullptr) return;
    if (walk.mode == WalkMode::packet && packet.destination_mac != walk.source_subnet->mac)
        return drop(walk, DropReason::inner_wrong_mac);
    walk.note(openflow::kLocal, Outcome::match, gateway->cookie);
    walk.gateway = gateway;
}

// Egress rules have been asked: what remains is ping.
void deliver(const FunctionState&, WalkState& walk) {
    const Packet& packet = walk.packet;
    const bool v4 = packet.kind == EtherKind::ipv4;
    const auto icmp = static_cast<std::uint8_t>(v4 ? Protocol::icmp : Protocol::icmpv6);
    const bool echo = packet.tuple.protocol == icmp && packet.icmp_type == (v4 ? 8 : 128) &&
                      packet.icmp_code == 0;
    if (!echo) return walk.drop(openflow::kLocal, DropReason::gateway_protocol);
    walk.answer(openflow::kLocal, Answer::echo_reply, packet.tuple.destination,
                walk.source_subnet->mac, walk.gateway->cookie);
}

SubnetRecord subnet_of(const LocalRow& row) {
    return {.key = {row.subnet, row.address.family()},
            .vpc = row.vpc,
            .gateway = row.address,
            .mac = row.mac,
            .prefix_length = row.prefix_length,
            .route_table = row.route_table,
            .mtu = row.mtu,
            .cookie = row.cookie};
}

class GatewayAddress final : public NetworkFunction {
  public:
    [[nodiscard]] std::string_view name() const override { return "gateway_address"; }
    [[nodiscard]] std::span<const openflow::TableSchema* const> tables() const override {
        static constexpr const openflow::TableSchema* kTables[] = {&kLocalSchema};
        return kTables;
    }
    [[nodiscard]] std::span<const Step> steps() const override {
        static constexpr Step kSteps[] = {{Stage::local, &judge_local},
                                          {Stage::delivered, &deliver}};
        return kSteps;
    }
    [[nodiscard]] std::shared_ptr<const FunctionState> initial() const override {
        return std::make_shared<State>();
    }

    // A subnet whose gateway moves to another address loses one entry and gains another: one
    // change all the same.
    [[nodiscard]] Result<std::shared_ptr<const FunctionState>> apply(
        const FunctionState& before, std::span<const EntryChange> changes,
        Commit& commit) const override {
        return next_state<State>(before, [&](State& next) -> Result<void> {
            std::map<std::pair<SubnetId, Family>, std::optional<SubnetRecord>> subnets;
            for (const EntryChange& change : changes) {
                if (change.before == nullptr) continue;
                const auto row = LocalRow::decode(*change.before);
                if (!row) return row.error();
                next.gateways.remove({row->vpc, row->address});
                subnets[{row->subnet, row->address.family()}];
            }
            for (const EntryChange& change : changes) {
                if (change.after == nullptr) continue;
                const auto row = LocalRow::decode(*change.after);
                if (!row) return row.error();
                const SubnetRecord subnet = subnet_of(*row);
                next.gateways.put({{row->vpc, row->address}, subnet.key});
                const auto [wanted, untouched] =
                    subnets.try_emplace({row->subnet, row->address.family()});
                if (wanted->second || (untouched && commit.subnet(subnet.key) != nullptr))
                    return Error{Error::Code::conflict, "the subnet has another gateway address",
                                 "local.subnet"};
                wanted->second = subnet;
            }
            for (const auto& [key, subnet] : subnets)
                commit.change_subnet({key.first, key.second}, subnet);
            return {};
        });
    }
};

}  // namespace

const NetworkFunction& gateway_address() {
    static const GatewayAddress function;
    return function;
}

}  // namespace sluice::nfv
