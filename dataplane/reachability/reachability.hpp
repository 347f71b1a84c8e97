// SPDX-License-Identifier: Apache-2.0
// Turns what the tables say (endpoints, hosts, subnets, VPCs) and what the links say
// (neighbours) into the records that flows point at: adjacencies and sources.
//
// Use: tell it what a commit changed (put_*, remove_*), then `build`; tell it that neighbours
// moved with `neighbours_changed`. A record is rebuilt only if something it was made of
// changed, and swapped with one store, so flows follow without being touched.
// Ownership: owns every record; indexes belong to whoever allocated them (the policy store),
// those of the outside to this class. A replaced record is freed after a grace period.
// Threads: the control thread's. Cost: about 300 ns per record rebuilt.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "dataplane/openflow/tables.hpp"
#include "dataplane/policy/adjacency.hpp"
#include "dataplane/reachability/retired.hpp"
#include "dataplane/reachability/routes.hpp"

namespace sluice::reachability {

// An address of an endpoint, and the indexes under which flows find the way to it.
struct Place {
    VpcId vpc;
    IpAddress address;
    SubnetId subnet;
    HostId host;
    MacAddress mac;
    AdjacencyIndex routed;   // from another subnet
    AdjacencyIndex bridged;  // from the same one
};

// What a subnet gives to the packets that enter it.
struct Subnet {
    SubnetId id;
    Family family = Family::ipv4;
    MacAddress gateway_mac;
    std::uint16_t mtu = 1500;  // octets of an inner IP packet
};

// A MAC address that may send for an endpoint.
struct Sender {
    SourceIndex index;
    VpcId vpc;
    HostId host;
    MacAddress mac;
};

// The indexes of everything behind the uplink.
struct Outside {
    AdjacencyIndex ipv4, ipv6;
    SourceIndex source;
};

class Reachability {
  public:
    Reachability(policy::AdjacencyTable& adjacencies, policy::SourceTable& sources,
                 reclaim::Qsbr& qsbr, Routes& routes);
    // Only when nobody reads the records any more.
    ~Reachability();
    Reachability(const Reachability&) = delete;
    Reachability& operator=(const Reachability&) = delete;

    [[nodiscard]] const Outside& outside() const { return outside_; }

    void put_vpc(VpcId vpc, Vni vni, policy::ZoneSlot zone);
    void remove_vpc(VpcId vpc);
    void put_subnet(const Subnet& subnet);
    void remove_subnet(SubnetId subnet, Family family);
    void put_host(const openflow::HostRow& host, neighbour::Time now);
    void remove_host(HostId host);
    void put_place(const Place& place);
    void remove_place(VpcId vpc, const IpAddress& address);
    void put_sender(const Sender& sender);
    void remove_sender(SourceIndex index);

    // Rebuilds what the calls above concern.
    void build();
    // Neighbours or links changed: rebuilds what goes another way now. Returns how many records.
    std::size_t neighbours_changed();
    // Frees replaced records whose grace period is over.
    void reclaim();

    struct Counts {
        std::size_t places = 0, hosts = 0, senders = 0;
        std::size_t unreachable_hosts = 0;  // have no VTEP that can be reached now
    };
    [[nodiscard]] Counts counts() const;

  private:
    struct PlaceKey {
        VpcId vpc;
        IpAddress address;
        bool operator==(const PlaceKey&) const = default;
    };
    struct SubnetKey {
        SubnetId id;
        Family family;
        bool operator==(const SubnetKey&) const = default;
    };
    struct Hash {
        std::size_t operator()(const PlaceKey& key) const {
            return std::hash<IpAddress>{}(key.address) * 31 + std::hash<VpcId>{}(key.vpc);
        }
        std::size_t operator()(const SubnetKey& key) const {
            return std::hash<SubnetId>{}(key.id) * 2 + (key.family == Family::ipv4);
        }
    };
    using PlaceKeys = std::unordered_set<PlaceKey, Hash>;
    using SourceIndexes = std::unordered_set<SourceIndex>;
    struct Vpc {
        Vni vni;
        policy::ZoneSlot zone;
        bool open = false;
        PlaceKeys places;
        SourceIndexes senders;
    };
    struct Host {
        std::vector<IpAddress> vteps;
        bool known = false;
        PlaceKeys places;
        SourceIndexes senders;
    };
    struct SubnetState {
        Subnet facts;
        bool known = false;
        PlaceKeys places;
    };

    void mark(const PlaceKeys& places) { dirty_places_.insert(places.begin(), places.end()); }
    void mark(const SourceIndexes& senders) {
        dirty_senders_.insert(senders.begin(), senders.end());
    }
    void hold(const std::vector<IpAddress>& vteps, HostId host, neighbour::Time now);
    void release(const std::vector<IpAddress>& vteps, HostId host);
    void unlink(const PlaceKey& key, const Place& place);
    void unlink(const Sender& sender);
    void build_place(const PlaceKey& key);
    void build_sender(SourceIndex index);
    void build_internet();
    [[nodiscard]] policy::Adjacency to_place(const Place& place, bool bridged) const;
    [[nodiscard]] policy::Adjacency to_internet(Family family) const;
    void replace(AdjacencyIndex index, std::unique_ptr<const policy::Adjacency> record);
    void replace(SourceIndex index, std::unique_ptr<const policy::Source> record);

    policy::AdjacencyTable& adjacencies_;
    policy::SourceTable& sources_;
    Routes& routes_;
    Outside outside_;

    std::unordered_map<VpcId, Vpc> vpcs_;
    std::unordered_map<SubnetKey, SubnetState, Hash> subnets_;
    std::unordered_map<HostId, Host> hosts_;
    std::unordered_map<PlaceKey, Place, Hash> places_;
    std::unordered_map<SourceIndex, Sender> senders_;
    std::unordered_map<IpAddress, std::unordered_set<HostId>> hosts_by_vtep_;

    PlaceKeys dirty_places_;
    SourceIndexes dirty_senders_;
    Retired<policy::Adjacency> retired_adjacencies_;
    Retired<policy::Source> retired_sources_;
};

}  // namespace sluice::reachability
