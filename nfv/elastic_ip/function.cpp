// SPDX-License-Identifier: Apache-2.0
#include "nfv/elastic_ip/function.hpp"

#include "dataplane/wire/special_address.hpp"
#include "nfv/elastic_ip/table.hpp"

namespace sluice::nfv {
namespace {

using namespace policy;

struct PrivateRecord {
    using Traits = KeyedTraits<PrivateRecord, AddressKey>;
    AddressKey key;
    IpAddress public_address;
    MeterId meter;  // outwards
    Cookie cookie;
};

struct PublicRecord {
    using Traits = KeyedTraits<PublicRecord, AddressKey>;
    AddressKey key;  // of the outside
    VpcId vpc;
    IpAddress private_address;  // none: attached to nobody
    MeterId meter;              // inwards
    Cookie cookie;
    bool nat_gateway = false;  // a NAT gateway's: nfv/nat_gateway says who is behind it
};

struct State : FunctionState {
    PersistentMap<PrivateRecord> by_private;
    PersistentMap<PublicRecord> by_public;
};

const State& typed(const FunctionState& state) {
    return static_cast<const State&>(state);
}

constexpr std::uint16_t kRocePort = 4791;

// RoCEv2's iCRC covers the addresses and ports, and the gateway cannot recompute it for what it
// has not seen whole (InfiniBand Annex A17).
bool is_roce(const Tuple& tuple) {
    return tuple.protocol == static_cast<std::uint8_t>(Protocol::udp) &&
           tuple.destination_port == kRocePort;
}

void draw(DirectionPlan& direction, MeterId meter) {
    for (MeterId& slot : direction.meters)
        if (!slot) {
            slot = meter;
            return;
        }
}

bool is_unique_local(const IpAddress& address) {  // fc00::/7, RFC 4193
    return !address.is_v4() && (address.bytes[0] & 0xfe) == 0xfc;
}

// Towards the internet: as whom? An IPv6 prefix of a pool is its own public address: its entry
// translates it to itself.
void translate_source(const FunctionState& function, WalkState& walk) {
    const State& state = typed(function);
    const IpAddress& address = walk.tuple.source;
    const VpcId vpc = walk.plan.source_vpc;
    const PrivateRecord* record = state.by_private.find({vpc, address});
    const PublicRecord* back =
        record == nullptr ? nullptr : state.by_public.find({kOutside, record->public_address});
    // An address that does not lead back to its sender is not the sender's.
    const bool own = back != nullptr && back->vpc == vpc && back->private_address == address;
    // A route to a NAT gateway is for those who have none; and a connection that has a port there
    // keeps it.
    if (walk.next_hop == openflow::NextHop::nat_gateway && walk.family() == Family::ipv4 &&
        (!own || (walk.established != nullptr && walk.established->nat_source)))
        return;
    if (!own)
        return walk.drop(openflow::kElasticIp, is_unique_local(address)
                                                   ? DropReason::private_on_uplink
                                                   : DropReason::no_elastic_ip);
    if (record->public_address != address && is_roce(walk.tuple))
        return walk.drop(openflow::kElasticIp, DropReason::roce_not_translated, record->cookie);
    walk.note(openflow::kElasticIp, Outcome::translate, record->cookie, DropReason::none,
              record->public_address);
    walk.plan.path.source_translation = record->cookie;
    draw(walk.plan.forward, record->meter);
    draw(walk.plan.reverse, back->meter);
    walk.tuple.source = record->public_address;
    walk.may_leave = true;
}

// ARP and neighbour solicitation on the uplink, for pools that are on its link. The answer's MAC
// is the port's own, which the worker knows.
bool asks_for_public(const Packet& packet, IpAddress& target) {
    const bool solicitation =
        packet.kind == EtherKind::ipv6 &&
        packet.tuple.protocol == static_cast<std::uint8_t>(Protocol::icmpv6) &&
        packet.icmp_type == 135;
    target = solicitation ? packet.nd_target : packet.tuple.destination;
    return solicitation || packet.kind == EtherKind::arp;
}

// From outside, or on the way there: is the destination one of ours?
void translate_destination(const FunctionState& function, WalkState& walk) {
    const State& state = typed(function);
    const bool uplink = !walk.from_overlay();
    IpAddress target = walk.tuple.destination;
    const bool resolve = uplink && asks_for_public(walk.packet, target);
    const PublicRecord* record = state.by_public.find({kOutside, target});
    if (resolve) {
        const bool arp = walk.packet.kind == EtherKind::arp;
        if (record == nullptr)
            return walk.drop(openflow::kPublicAddress,
                             arp ? DropReason::inner_arp : DropReason::inner_nd);
        return walk.answer(openflow::kPublicAddress,
                           arp ? Answer::arp_reply : Answer::neighbour_advert, target, {},
                           record->cookie);
    }
    // Whoever claims an address that the internet does not have wants to pass for a member.
    if (uplink && !wire::is_internet(walk.tuple.source))
        return walk.drop(openflow::kPublicAddress, DropReason::private_on_uplink);
    // Nobody outside has an address of ours.
    if (uplink && state.by_public.find({kOutside, walk.tuple.source}) != nullptr)
        return walk.drop(openflow::kPublicAddress, DropReason::spoofed_ip);
    if (record == nullptr && !uplink) return;  // it leaves, if the internet has its destination
    if (record != nullptr && record->nat_gateway) {
        if (is_roce(walk.tuple))
            return walk.drop(openflow::kPublicAddress, DropReason::roce_not_translated,
                             record->cookie);
        walk.to_nat_gateway = true;
        return;
    }
    if (record == nullptr || record->private_address.is_none())
        return walk.refuse(openflow::kPublicAddress, DropReason::unknown_public_address,
                           Answer::host_unreachable, record == nullptr ? Cookie{} : record->cookie);
    // Nor one of the VPC's, should that be numbered out of public blocks.
    if (uplink && walk.snapshot.core.endpoints.find({record->vpc, walk.tuple.source}) != nullptr)
        return walk.drop(openflow::kPublicAddress, DropReason::spoofed_ip, record->cookie);
    const bool changes = record->private_address != target;
    if (changes && is_roce(walk.tuple))
        return walk.drop(openflow::kPublicAddress, DropReason::roce_not_translated, record->cookie);
    walk.note(openflow::kPublicAddress, Outcome::translate, record->cookie, DropReason::none,
              record->private_address);
    walk.plan.path.destination_translation = record->cookie;
    draw(walk.plan.forward, record->meter);
    const PrivateRecord* back = state.by_private.find({record->vpc, record->private_address});
    if (back != nullptr) draw(walk.plan.reverse, back->meter);
    walk.tuple.destination = record->private_address;
    walk.destination_vpc = record->vpc;
}

// The gateway answers for elastic addresses on the uplink's link: for one that is another
// station's, its own router's for one, the link would no longer find that station.
std::optional<openflow::Problem> check_public(const IpAddress& address,
                                              openflow::Violation violation,
                                              const OwnAddresses& own) {
    const OwnAddresses::Owner* owner = own.find(address);
    if (owner == nullptr && wire::is_station(address)) return std::nullopt;
    return openflow::Problem{
        violation,
        {Error::Code::conflict,
         to_string(address) + " cannot be an elastic IP: it is " +
             (owner != nullptr ? owner->what : "not an address that a single station can have"),
         "elastic_ip"}};
}

class ElasticIp final : public NetworkFunction {
  public:
    [[nodiscard]] std::string_view name() const override { return "elastic_ip"; }
    [[nodiscard]] std::span<const openflow::TableSchema* const> tables() const override {
        static constexpr const openflow::TableSchema* kTables[] = {&kElasticIpSchema,
                                                                   &kPublicAddressSchema};
        return kTables;
    }
    [[nodiscard]] std::span<const Step> steps() const override {
        static constexpr Step kSteps[] = {{Stage::source_translation, &translate_source},
                                          {Stage::destination_translation, &translate_destination}};
        return kSteps;
    }
    [[nodiscard]] std::optional<openflow::Problem> check(const openflow::Entry& entry,
                                                         const OwnAddresses& own) const override {
        if (entry.key.table == openflow::kElasticIp) {
            const auto row = ElasticIpRow::decode(entry);
            return row ? check_public(row->public_address, openflow::Violation::set_value, own)
                       : std::nullopt;
        }
        const auto row = PublicAddressRow::decode(entry);
        return row ? check_public(row->public_address, openflow::Violation::match_value, own)
                   : std::nullopt;
    }
    [[nodiscard]] std::shared_ptr<const FunctionState> initial() const override {
        return std::make_shared<State>();
    }
    [[nodiscard]] Result<std::shared_ptr<const FunctionState>> apply(
        const FunctionState& before, std::span<const EntryChange> changes,
        Commit& commit) const override {
        return next_state<State>(before, [&](State& next) -> Result<void> {
            for (const EntryChange& change : changes) {
                auto done = change.entry().key.table == openflow::kElasticIp
                                ? apply_private(next, change, commit)
                                : apply_public(next, change, commit);
                if (!done) return done;
            }
            return {};
        });
    }

  private:
    static Result<void> apply_private(State& state, const EntryChange& change, Commit& commit) {
        const auto row = ElasticIpRow::decode(change.entry());
        if (!row) return row.error();
        commit.concerns(row->vpc);
        const AddressKey key{row->vpc, row->private_address};
        if (change.after == nullptr)
            state.by_private.remove(key);
        else
            state.by_private.put({key, row->public_address, row->meter, row->cookie});
        return {};
    }

    static bool leads_to_the_same(const PublicAddressRow& row, const openflow::Entry& after) {
        const auto next = PublicAddressRow::decode(after);
        return next && next->vpc == row.vpc && next->private_address == row.private_address &&
               next->nat_gateway == row.nat_gateway;
    }

    // Concerns the VPC that loses the address and the one that gains it.
    static Result<void> apply_public(State& state, const EntryChange& change, Commit& commit) {
        bool stays = false;  // with whom it was
        if (change.before != nullptr) {
            const auto row = PublicAddressRow::decode(*change.before);
            if (!row) return row.error();
            commit.concerns(row->vpc);
            state.by_public.remove({kOutside, row->public_address});
            if (change.after != nullptr) stays = leads_to_the_same(*row, *change.after);
            if (row->nat_gateway) {
                commit.concerns(row->nat_gateway);
                commit.remove_nat_address(row->public_address);
            }
            if (change.after == nullptr) commit.change_public_address(row->public_address, false);
        }
        if (change.after != nullptr) {
            const auto row = PublicAddressRow::decode(*change.after);
            if (!row) return row.error();
            commit.concerns(row->vpc);
            state.by_public.put({{kOutside, row->public_address},
                                 row->vpc,
                                 row->private_address,
                                 row->meter,
                                 row->cookie,
                                 static_cast<bool>(row->nat_gateway)});
            if (row->nat_gateway) {
                commit.concerns(row->nat_gateway);
                commit.put_nat_address(
                    {{kOutside, row->public_address}, row->nat_gateway, row->meter, row->cookie});
            }
            // Announced on a link also where it only changes hands: its neighbours may have been
            // told otherwise in between.
            if (!stays) commit.change_public_address(row->public_address, true);
            if (change.before == nullptr) {
                // Connections to it left on the uplink so far; they end here now.
                commit.concerns(kOutside);
            }
        }
        return {};
    }
};

}  // namespace

const NetworkFunction& elastic_ip() {
    static const ElasticIp function;
    return function;
}

}  // namespace sluice::nfv
