// SPDX-License-Identifier: Apache-2.0
#include "nfv/anti_spoof/function.hpp"

#include <algorithm>

#include "nfv/anti_spoof/table.hpp"

namespace sluice::nfv {
namespace {

using namespace policy;

// A block of addresses that a MAC may send from.
struct Allowed {
    Prefix block;
    EndpointId endpoint;
    HostId host;
    SourceIndex source;
    Cookie cookie;
};

struct MacKey {
    VpcId vpc;
    MacAddress mac;
    bool operator==(const MacKey&) const = default;
    [[nodiscard]] std::uint64_t hash() const { return finish(mix(mix(8, vpc.value), mac.value())); }
};

struct MacRecord {
    using Traits = KeyedTraits<MacRecord, MacKey>;
    MacKey key;
    std::vector<Allowed> allowed;  // longest block first

    [[nodiscard]] const Allowed* find(const IpAddress& address) const {
        for (const Allowed& one : allowed)
            if (one.block.contains(address)) return &one;
        return nullptr;
    }
};

struct State : FunctionState {
    PersistentMap<MacRecord> macs;
};

const State& typed(const FunctionState& state) {
    return static_cast<const State&>(state);
}

bool is_link_local(const IpAddress& address) {  // fe80::/10
    return address.bytes[0] == 0xfe && (address.bytes[1] & 0xc0) == 0x80;
}

// What a station sends before it has an address, or with one that is valid on its link only:
// ARP probes (RFC 5227 2.1.1), DHCP (RFC 2131 4.1), duplicate address detection (RFC 4862 5.4.2),
// neighbour discovery and whatever else IPv6 sends to a multicast group of the link.
bool needs_no_address(const Packet& packet) {
    const Tuple& tuple = packet.tuple;
    if (tuple.source == IpAddress::v4(be32{0}))
        return packet.kind == EtherKind::arp ||
               (tuple.protocol == static_cast<std::uint8_t>(Protocol::udp) &&
                tuple.source_port == 68 && tuple.destination_port == 67);
    if (packet.kind != EtherKind::ipv6) return false;
    if (!tuple.source.is_none() && !is_link_local(tuple.source)) return false;
    const bool discovery = tuple.protocol == static_cast<std::uint8_t>(Protocol::icmpv6) &&
                           packet.icmp_type >= 133 && packet.icmp_type <= 136;
    return discovery || tuple.destination.is_multicast();
}

void drop(WalkState& walk, DropReason reason, Cookie cookie = {}) {
    walk.drop(openflow::kSource, reason, cookie);
}

// Why it is not let in; whether its VTEP is anybody's is asked only now.
void reject(WalkState& walk, DropReason reason, Cookie cookie = {}) {
    const bool known = walk.mode == WalkMode::rewalk ||
                       walk.snapshot.core.vteps.find({walk.packet.vtep}) != nullptr;
    drop(walk, known ? reason : DropReason::unknown_vtep, known ? cookie : Cookie{});
}

// Why no row lets this MAC send with this address, whose owner may be nobody.
DropReason why_not(const EndpointRecord* owner, const MacAddress& mac, const MacRecord* record) {
    // Its owner's own MAC: nobody is impersonated, there is just no row for them.
    if (owner != nullptr && owner->mac == mac) return DropReason::unknown_source;
    if (record != nullptr) return DropReason::spoofed_ip;
    return owner != nullptr ? DropReason::spoofed_mac : DropReason::unknown_source;
}

// The endpoint, by the address it sends with where that is its own.
const EndpointRecord* find_sender(const Core& core, VpcId vpc, const IpAddress& address,
                                  EndpointId endpoint, Family family) {
    const EndpointRecord* owner = core.endpoints.find({vpc, address});
    return owner != nullptr && owner->endpoint == endpoint ? owner
                                                           : core.endpoint(endpoint, family);
}

void identify(const FunctionState& state, WalkState& walk) {
    const Core& core = walk.snapshot.core;
    const Packet& packet = walk.packet;
    const VpcId vpc = walk.plan.source_vpc;
    const IpAddress& address = packet.tuple.source;
    const bool fresh = walk.mode == WalkMode::packet;

    MacAddress mac = packet.source_mac;
    if (!fresh && mac.is_zero())
        if (const EndpointRecord* owner = core.endpoints.find({vpc, address})) mac = owner->mac;
    const MacRecord* record = typed(state).macs.find({vpc, mac});
    const Allowed* allowed = record == nullptr ? nullptr : record->find(address);
    if (allowed == nullptr && record != nullptr && needs_no_address(packet))
        allowed = &record->allowed.front();
    if (allowed == nullptr)
        return reject(walk, why_not(core.endpoints.find({vpc, address}), mac, record));
    const HostRecord* host = core.hosts.find(allowed->host);
    if (fresh && (host == nullptr || !host->has(packet.vtep)))
        return reject(walk, DropReason::spoofed_vtep, allowed->cookie);

    walk.source =
        find_sender(core, vpc, address, allowed->endpoint, packet.tuple.destination.family());
    if (walk.source == nullptr) return drop(walk, DropReason::unknown_source, allowed->cookie);
    walk.note(openflow::kSource, Outcome::match, allowed->cookie);
    walk.plan.forward.source = allowed->source;
}

// Replies come from the destination's MAC with the address that the packet was for. A next hop
// that may not send with that address may not forward either.
void admit_reply(const FunctionState& state, WalkState& walk) {
    const EndpointRecord& destination = *walk.destination;
    const MacRecord* record = typed(state).macs.find({walk.destination_vpc, destination.mac});
    const Allowed* allowed = record == nullptr ? nullptr : record->find(walk.tuple.destination);
    if (allowed == nullptr || allowed->endpoint != destination.endpoint)
        return drop(walk, DropReason::source_check, destination.cookie);
    walk.plan.reverse.source = allowed->source;
}

class AntiSpoof final : public NetworkFunction {
  public:
    [[nodiscard]] std::string_view name() const override { return "anti_spoof"; }
    [[nodiscard]] std::span<const openflow::TableSchema* const> tables() const override {
        static constexpr const openflow::TableSchema* kTables[] = {&kSourceSchema};
        return kTables;
    }
    [[nodiscard]] std::span<const Step> steps() const override {
        static constexpr Step kSteps[] = {{Stage::source, &identify}, {Stage::reply, &admit_reply}};
        return kSteps;
    }
    [[nodiscard]] std::shared_ptr<const FunctionState> initial() const override {
        return std::make_shared<State>();
    }

    // Additions first: a MAC that changes its addresses keeps its source record.
    [[nodiscard]] Result<std::shared_ptr<const FunctionState>> apply(
        const FunctionState& before, std::span<const EntryChange> changes,
        Commit& commit) const override {
        return next_state<State>(before, [&](State& next) -> Result<void> {
            std::vector<SourceRow> removed;
            for (const EntryChange& change : changes) {
                if (change.before != nullptr) {
                    const auto row = SourceRow::decode(*change.before);
                    if (!row) return row.error();
                    removed.push_back(*row);
                    if (change.after == nullptr) remove(next, *row);
                }
                if (change.after == nullptr) continue;
                const auto row = SourceRow::decode(*change.after);
                if (!row) return row.error();
                const auto source = commit.add_sender(row->vpc, row->endpoint, row->mac, row->host);
                if (!source) return source.error();
                put(next, *row, *source);
                commit.concerns(row->vpc);
            }
            for (const SourceRow& row : removed) {
                commit.remove_sender(row.endpoint, row.mac);
                commit.concerns(row.vpc);
            }
            return {};
        });
    }

  private:
    static void put(State& state, const SourceRow& row, SourceIndex source) {
        MacRecord record{{row.vpc, row.mac}, {}};
        if (const MacRecord* there = state.macs.find(record.key)) record = *there;
        std::erase_if(record.allowed, [&](const Allowed& one) { return one.block == row.address; });
        const auto place = std::find_if(
            record.allowed.begin(), record.allowed.end(),
            [&](const Allowed& one) { return one.block.length <= row.address.length; });
        record.allowed.insert(place, {row.address, row.endpoint, row.host, source, row.cookie});
        state.macs.put(std::move(record));
    }
    static void remove(State& state, const SourceRow& row) {
        const MacRecord* there = state.macs.find({row.vpc, row.mac});
        if (there == nullptr) return;
        MacRecord record = *there;
        std::erase_if(record.allowed, [&](const Allowed& one) { return one.block == row.address; });
        if (record.allowed.empty())
            state.macs.remove(record.key);
        else
            state.macs.put(std::move(record));
    }
};

}  // namespace

const NetworkFunction& anti_spoof() {
    static const AntiSpoof function;
    return function;
}

}  // namespace sluice::nfv
