// SPDX-License-Identifier: Apache-2.0
// All resources at one moment, with the indexes that checks, the compiler and the API ask.
//
// Threads: one. Ownership: resources are shared and immutable; pointers from find() hold
// until the next apply(). Cost: look-ups O(log n); apply() follows the size of the diff: of a
// resource that is replaced, the indexes move by what differs.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "controller/model/resource.hpp"

namespace sluice::model {

// What may exist only once. The holder keeps it while it is being deleted, too.
struct Claim {
    enum class What : std::uint8_t {
        vni,             // scope: none
        address,         // of an endpoint or a subnet's gateway, scope: its VPC
        mac,             // scope: the VPC
        source,          // a MAC with a block it may send from, scope: the VPC
        vtep,            // of a host, scope: none
        public_address,  // scope: none
        route_table,     // `main`, scope: the VPC
        default_group,   // scope: the VPC
    };
    What what{};
    Uuid scope;
    IpAddress value;          // the address, or a number in its last bytes
    std::uint64_t extra = 0;  // of a source: the MAC and the block's length
    auto operator<=>(const Claim&) const = default;
};

// Which addresses of a block are free: everything from the lowest that was never taken on,
// but what was taken beyond it, and what was given back below it. Cost: O(log n).
class FreeAddresses {
  public:
    explicit FreeAddresses(const IpAddress& first) : unused_(first) {}
    void take(const IpAddress& address);
    void release(const IpAddress& address);
    [[nodiscard]] IpAddress lowest() const { return freed_.empty() ? unused_ : *freed_.begin(); }

  private:
    IpAddress unused_;
    std::set<IpAddress> freed_, above_;
};

class State {
  public:
    // Takes a diff whose `before`s are what this state holds; where it creates, what others
    // refer to comes first.
    void apply(const Diff& diff);

    // Nothing where it does not exist; one that is being deleted is found.
    [[nodiscard]] ResourcePtr find(Kind kind, const Uuid& id) const;
    template <Kind K>
    [[nodiscard]] ResourcePtr find(const Ref<K>& ref) const {
        return find(K, ref.id);
    }
    // The resource whose block holds the number, or whose rule or route has it.
    [[nodiscard]] ResourcePtr by_number(std::uint64_t number) const;
    // In the order of creation.
    [[nodiscard]] const std::map<std::uint64_t, ResourcePtr>& all(Kind kind) const {
        return by_kind_[static_cast<std::size_t>(kind)];
    }

    // Whoever of `kind` refers to `target`, until `visit` returns false.
    void each_referrer(const Uuid& target, Kind kind,
                       const std::function<bool(const ResourcePtr&)>& visit) const;
    [[nodiscard]] std::size_t count_referrers(const Uuid& target, Kind kind) const;
    // How many VPCs each gateway carries; those without one are under the empty name.
    [[nodiscard]] const std::map<std::string, std::size_t>& vpcs_by_gateway() const {
        return vpcs_by_gateway_;
    }

    // Who holds a claim.
    [[nodiscard]] ResourcePtr holder(const Claim& claim) const;
    // Claims of the kind and scope from `from` on, in order, until `visit` returns false.
    void each_claim(Claim from, const std::function<bool(const Claim&)>& visit) const;
    // The lowest address of a subnet that is free, wherever the block ends.
    [[nodiscard]] IpAddress first_candidate(const Uuid& subnet, Family family) const;

    // The VPC a subnet, endpoint, group, route table or NAT gateway is in; of an elastic IP,
    // that of its endpoint or NAT gateway. Nothing for the other kinds and where there is none.
    [[nodiscard]] ResourcePtr vpc_of(const Resource& resource) const;
    // Whose address an elastic IP is; nothing where it is none's that stays.
    [[nodiscard]] ResourcePtr nat_gateway_of(const Resource& elastic_ip) const;

  private:
    struct Indexed;
    static Indexed indexed(const ResourcePtr& resource);
    void take_out(const Change& change, const Indexed& before, const Indexed& after);
    void put_in(const Change& change, const Indexed& before, const Indexed& after);
    void move_addresses(const ResourcePtr& side, const ResourcePtr& other,
                        void (FreeAddresses::*move)(const IpAddress&));

    std::unordered_map<Uuid, ResourcePtr> by_id_;
    std::array<std::map<std::uint64_t, ResourcePtr>, kKinds> by_kind_;
    std::map<std::uint64_t, Uuid> parts_;  // of rules and routes: whose they are
    std::set<std::tuple<Uuid, Kind, Uuid>> referrers_;
    std::map<std::pair<Uuid, Kind>, std::size_t> referrer_counts_;  // none: 0
    std::map<std::string, std::size_t> vpcs_by_gateway_;
    std::map<Claim, Uuid> claims_;
    std::unordered_map<Uuid, std::vector<Claim>> held_;      // by holder
    std::map<std::pair<Uuid, Family>, FreeAddresses> free_;  // by subnet
};

// A MAC address with a block that an endpoint may send from. Its own addresses, or, with
// its source check off, everything; and what it is allowed beside them.
struct Source {
    MacAddress mac;
    Prefix block;
    auto operator<=>(const Source&) const = default;
};
std::vector<Source> sources_of(const Endpoint& endpoint);

// What a resource claims; needs the state to find its VPC.
std::vector<Claim> claims_of(const State& state, const Resource& resource);

}  // namespace sluice::model
