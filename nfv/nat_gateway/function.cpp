// SPDX-License-Identifier: Apache-2.0
#include "nfv/nat_gateway/function.hpp"

#include <algorithm>

#include "nfv/nat_gateway/table.hpp"

namespace sluice::nfv {
namespace {

using namespace policy;

struct GatewayRecord {
    using Traits = KeyedTraits<GatewayRecord, NumberKey<NatGatewayId>>;
    NumberKey<NatGatewayId> key{NatGatewayId{}};
    std::array<be32, kNatMaximumAddresses> address_array{};
    std::uint8_t address_count = 0;
    NatMapping mapping{};
    NatFiltering filtering{};
    std::uint32_t ports_per_endpoint = 0;
    MeterId meter;  // outwards
    Cookie cookie;

    [[nodiscard]] std::span<const be32> addresses() const {
        return {address_array.data(), address_count};
    }
};

struct State : FunctionState {
    PersistentMap<GatewayRecord> gateways;
};

constexpr std::uint16_t kRocePort = 4791;

const State& typed(const FunctionState& state) {
    return static_cast<const State&>(state);
}

void draw(DirectionPlan& direction, MeterId meter) {
    for (MeterId& slot : direction.meters)
        if (!slot) {
            slot = meter;
            return;
        }
}

bool is_icmp(const Tuple& tuple) {
    return tuple.protocol == static_cast<std::uint8_t>(Protocol::icmp);
}

// TCP, UDP and ICMP queries have a port that can be translated.
bool translatable(const Tuple& tuple) {
    if (is_icmp(tuple))
        return opposite_icmp_type(tuple.protocol,
                                  static_cast<std::uint8_t>(tuple.destination_port >> 8))
            .has_value();
    return tuple.protocol == static_cast<std::uint8_t>(Protocol::tcp) ||
           tuple.protocol == static_cast<std::uint8_t>(Protocol::udp);
}

// The address is the NAT gateway's in table 10 too, so that replies find it; nullptr: it is not.
const NatAddressRecord* address_of(const WalkState& walk, NatGatewayId gateway,
                                   const IpAddress& address) {
    const NatAddressRecord* record = walk.snapshot.core.nat_addresses.find({kOutside, address});
    return record != nullptr && record->nat_gateway == gateway ? record : nullptr;
}

// The port that the connection has, if the NAT gateway still has the address and the endpoint
// the port.
bool keeps(const WalkState& walk, const GatewayRecord& gateway) {
    const Established* held = walk.established;
    if (held == nullptr || !held->nat_source || walk.snapshot.nat_ports == nullptr) return false;
    const auto addresses = gateway.addresses();
    if (std::find(addresses.begin(), addresses.end(), held->source.to_v4()) == addresses.end())
        return false;
    const auto mapping =
        walk.snapshot.nat_ports->find(walk.tuple.protocol, held->source, held->source_port);
    return mapping && mapping->gateway == gateway.key.number &&
           mapping->endpoint == walk.plan.source;
}

NatPorts::Choice choose(const WalkState& walk, const GatewayRecord& gateway) {
    if (keeps(walk, gateway))
        return {DropReason::none, walk.established->source, walk.established->source_port};
    if (walk.snapshot.nat_ports == nullptr) return {DropReason::nat_ports_exhausted, {}, 0};
    return walk.snapshot.nat_ports->choose(
        {.gateway = gateway.key.number,
         .endpoint = walk.plan.source,
         .protocol = walk.tuple.protocol,
         .inside = walk.tuple.source,
         .port = walk.tuple.source_port,
         .endpoint_independent = gateway.mapping == NatMapping::endpoint_independent,
         .ports_per_endpoint = gateway.ports_per_endpoint,
         .addresses = gateway.addresses(),
         .zone = walk.plan.zone});
}

// Routed to a NAT gateway, and without an elastic IP of its own.
void translate_source(const FunctionState& function, WalkState& walk) {
    if (!walk.nat_gateway || walk.may_leave) return;
    const GatewayRecord* gateway = typed(function).gateways.find(walk.nat_gateway);
    if (gateway == nullptr)
        return walk.drop(openflow::kNatGateway, DropReason::nat_gateway_unknown,
                         walk.plan.path.route);
    const auto refuse = [&](DropReason reason) {
        walk.drop(openflow::kNatGateway, reason, gateway->cookie);
    };
    if (walk.tuple.protocol == static_cast<std::uint8_t>(Protocol::udp) &&
        walk.tuple.destination_port == kRocePort)
        return refuse(DropReason::roce_not_translated);
    if (!translatable(walk.tuple)) return refuse(DropReason::nat_protocol);
    const NatPorts::Choice choice = choose(walk, *gateway);
    if (choice.reason != DropReason::none) return refuse(choice.reason);
    const NatAddressRecord* address = address_of(walk, walk.nat_gateway, choice.address);
    if (address == nullptr) return refuse(DropReason::nat_gateway_unknown);

    walk.note(openflow::kNatGateway, Outcome::translate, gateway->cookie, DropReason::none,
              choice.address, choice.port);
    walk.plan.path.source_translation = gateway->cookie;
    draw(walk.plan.forward, gateway->meter);
    draw(walk.plan.reverse, address->meter);
    NatPlan& nat = walk.plan.nat;
    nat.source = walk.nat_gateway;
    nat.cookie = gateway->cookie;
    nat.endpoint_independent = gateway->mapping == NatMapping::endpoint_independent;
    // Whatever filters now: filtering by address may be wanted while the connection lives.
    nat.remembers_remote = nat.endpoint_independent;
    nat.ports_per_endpoint = gateway->ports_per_endpoint;
    nat.addresses = gateway->addresses();
    walk.tuple.source = choice.address;
    walk.tuple.source_port = choice.port;
    walk.may_leave = true;
}

// Whether the sender may open a connection to the mapped port (RFC 4787 section 5). One that is
// there already was let in by what may have ended since.
bool admits(const WalkState& walk, const GatewayRecord& gateway) {
    switch (gateway.filtering) {
        case NatFiltering::endpoint_independent:
            return true;
        case NatFiltering::address_dependent:
            return walk.established != nullptr ||
                   walk.snapshot.nat_ports->admits(walk.tuple.protocol, walk.tuple.destination,
                                                   walk.tuple.destination_port, walk.tuple.source);
        case NatFiltering::address_and_port_dependent:
            break;
    }
    return false;
}

// Whether what the endpoint sends to that address leaves through the NAT gateway: nobody else than
// those whom it serves is reached through it either.
bool serves(const Core& core, NatGatewayId gateway, const EndpointRecord& endpoint,
            const IpAddress& remote) {
    const SubnetRecord* subnet = core.subnets.find({endpoint.subnet, Family::ipv4});
    if (subnet == nullptr) return false;
    const RouteTableRecord* table = core.route_tables.find(subnet->route_table);
    const openflow::RouteRow* row = table == nullptr ? nullptr : table->routes->find(remote);
    return row != nullptr && row->next_hop == openflow::NextHop::nat_gateway &&
           row->nat_gateway == gateway;
}

// From outside, or from a tenant, to an address of a NAT gateway: replies have their connection;
// what comes here would open one.
void translate_destination(const FunctionState& function, WalkState& walk) {
    if (!walk.to_nat_gateway) return;
    const IpAddress public_address = walk.tuple.destination;
    const NatAddressRecord* address =
        walk.snapshot.core.nat_addresses.find({kOutside, public_address});
    if (address == nullptr) return walk.drop(openflow::kPublicAddress, DropReason::nat_unmapped);
    const auto refuse = [&](DropReason reason) {
        walk.drop(openflow::kPublicAddress, reason, address->cookie);
    };
    const GatewayRecord* gateway = typed(function).gateways.find(address->nat_gateway);
    // An ICMP identifier is mapped for replies alone (RFC 5508 section 3).
    if (gateway == nullptr || walk.snapshot.nat_ports == nullptr || is_icmp(walk.tuple))
        return refuse(DropReason::nat_unmapped);
    const auto mapping = walk.snapshot.nat_ports->find(walk.tuple.protocol, public_address,
                                                       walk.tuple.destination_port);
    if (!mapping || mapping->port == 0 || mapping->gateway != address->nat_gateway)
        return refuse(DropReason::nat_unmapped);
    const Core& core = walk.snapshot.core;
    const EndpointRecord* endpoint = core.endpoint(mapping->endpoint, Family::ipv4);
    if (endpoint == nullptr || !serves(core, mapping->gateway, *endpoint, walk.tuple.source))
        return refuse(DropReason::nat_unmapped);
    // Nobody outside has an address of the VPC's own.
    if (!walk.from_overlay() &&
        core.endpoints.find({endpoint->key.vpc, walk.tuple.source}) != nullptr)
        return refuse(DropReason::spoofed_ip);
    if (!admits(walk, *gateway)) return refuse(DropReason::nat_filtered);

    walk.note(openflow::kPublicAddress, Outcome::translate, address->cookie, DropReason::none,
              mapping->inside, mapping->port);
    walk.plan.path.destination_translation = address->cookie;
    draw(walk.plan.forward, address->meter);
    draw(walk.plan.reverse, gateway->meter);
    walk.plan.nat.destination = mapping->gateway;
    walk.tuple.destination = mapping->inside;
    walk.tuple.destination_port = mapping->port;
    walk.destination = endpoint;
    walk.destination_vpc = endpoint->key.vpc;
}

class NatGateway final : public NetworkFunction {
  public:
    [[nodiscard]] std::string_view name() const override { return "nat_gateway"; }
    [[nodiscard]] std::span<const openflow::TableSchema* const> tables() const override {
        static constexpr const openflow::TableSchema* kTables[] = {&kNatGatewaySchema};
        return kTables;
    }
    [[nodiscard]] std::span<const Step> steps() const override {
        static constexpr Step kSteps[] = {{Stage::source_translation, &translate_source},
                                          {Stage::destination_translation, &translate_destination}};
        return kSteps;
    }
    [[nodiscard]] std::optional<openflow::Problem> check(
        const openflow::Entry& entry, const OwnAddresses& /*own*/) const override {
        auto row = NatGatewayRow::decode(entry);
        if (row) return std::nullopt;
        return openflow::Problem{openflow::Violation::set_value, row.error()};
    }
    [[nodiscard]] std::shared_ptr<const FunctionState> initial() const override {
        return std::make_shared<State>();
    }
    [[nodiscard]] Result<std::shared_ptr<const FunctionState>> apply(
        const FunctionState& before, std::span<const EntryChange> changes,
        Commit& commit) const override {
        return next_state<State>(before, [&](State& next) -> Result<void> {
            for (const EntryChange& change : changes) {
                const auto row = NatGatewayRow::decode(change.entry());
                if (!row) return row.error();
                commit.concerns(row->nat_gateway);
                // What was let in from outside is of VPCs that these routes may not serve.
                commit.concerns(kOutside);
                if (change.after == nullptr)
                    next.gateways.remove(row->nat_gateway);
                else
                    next.gateways.put(record_of(*row));
            }
            return {};
        });
    }

  private:
    static GatewayRecord record_of(const NatGatewayRow& row) {
        GatewayRecord record;
        record.key = row.nat_gateway;
        for (const IpAddress& address : row.addresses)
            record.address_array[record.address_count++] = address.to_v4();
        record.mapping = row.mapping;
        record.filtering = row.filtering;
        record.ports_per_endpoint = row.ports_per_endpoint;
        record.meter = row.meter;
        record.cookie = row.cookie;
        return record;
    }
};

}  // namespace

const NetworkFunction& nat_gateway() {
    static const NatGateway function;
    return function;
}

}  // namespace sluice::nfv
