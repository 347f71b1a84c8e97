// SPDX-License-Identifier: Apache-2.0
// A commit in the making: the next core state, whom it concerns, and what of reachability
// it moves. Network functions report through it while they apply their changes.
//
// Threads: the control thread. Nothing of it is visible to anybody until it is published.
#pragma once

#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "dataplane/openflow/entry.hpp"
#include "dataplane/policy/delta.hpp"
#include "dataplane/policy/snapshot.hpp"
#include "dataplane/wire/result.hpp"

namespace sluice::policy {

// An entry before and after; nullptr where there is none. Never both, never equal.
struct EntryChange {
    const openflow::Entry* before = nullptr;
    const openflow::Entry* after = nullptr;

    // As it is, or as it was: whoever asks for what the key says need not care.
    [[nodiscard]] const openflow::Entry& entry() const {
        return after != nullptr ? *after : *before;
    }
};

// Indexes taken from, or to be given back to, the tables of reachability.
struct IndexLists {
    std::vector<AdjacencyIndex> adjacencies;
    std::vector<SourceIndex> sources;
    std::vector<ZoneSlot> zones;
};

// Where zone slots come from: 1 to capacity - 1.
class ZoneSlots {
  public:
    explicit ZoneSlots(std::uint32_t capacity);
    [[nodiscard]] ZoneSlot allocate();  // 0: none left
    void free(ZoneSlot slot) { free_.push_back(slot); }

  private:
    std::vector<ZoneSlot> free_;
};

struct IndexSources {
    AdjacencyTable& adjacencies;
    SourceTable& sources;
    ZoneSlots& zones;
};

class Commit {
  public:
    Commit(const Snapshot& before, Core& next, IndexSources indexes);

    // --- for network functions ---

    // Connections of this VPC must be judged again.
    void concerns(VpcId vpc) { vpcs_.insert(vpc); }
    // Of every VPC with a member of the group.
    void concerns(GroupId group) { groups_.insert(group); }
    // Of every VPC that a route to the NAT gateway serves.
    void concerns(NatGatewayId nat_gateway) { nat_gateways_.insert(nat_gateway); }
    // A public address is a NAT gateway's; or no longer.
    void put_nat_address(const NatAddressRecord& record) { next_.nat_addresses.put(record); }
    void remove_nat_address(const IpAddress& address) {
        next_.nat_addresses.remove({kOutside, address});
    }
    // A MAC that an endpoint may send with gained or lost a row. The result is the index of
    // its source record; an error when the table is full.
    Result<SourceIndex> add_sender(VpcId vpc, EndpointId endpoint, const MacAddress& mac,
                                   HostId host);
    void remove_sender(EndpointId endpoint, const MacAddress& mac);
    [[nodiscard]] const SubnetRecord* subnet(const SubnetKey& key) const {
        return next_.subnets.find(key);
    }
    // A subnet's family appears, changes or goes; one call each.
    void change_subnet(const SubnetKey& key, const std::optional<SubnetRecord>& after);
    // The gateway answers for this address on the uplink, or no longer does.
    void change_public_address(const IpAddress& address, bool there);

    // --- for the store ---

    Result<void> apply_core(std::uint8_t table, std::span<const EntryChange> changes);
    Result<void> apply_meters(const openflow::Changes& changes);
    // One entry more or less draws from the meter.
    void draws(MeterId meter, int entries);
    // After all: no entry may draw from a meter that is not there.
    Result<void> settle_meters();
    [[nodiscard]] std::vector<ZoneSlot> zones() const;
    Delta& delta() { return delta_; }
    IndexLists& taken() { return taken_; }
    IndexLists& released() { return released_; }

  private:
    Result<void> apply_vnis(std::span<const EntryChange> changes);
    void change_vpc(const VpcRecord& before, const openflow::VniRow& row);
    Result<void> apply_routes(std::span<const EntryChange> changes);
    Result<void> apply_endpoints(std::span<const EntryChange> changes);
    Result<void> put_endpoint(const openflow::EndpointRow& row);
    void remove_endpoint(const openflow::EndpointRow& row);
    Result<void> apply_hosts(std::span<const EntryChange> changes);
    void use(UsedKey key, VpcId vpc, int times);
    void lead(const openflow::RouteRow& row, int times);
    MeterRecord meter(MeterId id) const;

    const Snapshot& before_;
    Core& next_;
    IndexSources indexes_;
    Delta delta_;
    IndexLists taken_, released_;
    std::unordered_set<VpcId> vpcs_;
    std::unordered_set<GroupId> groups_;
    std::unordered_set<RouteTableId> route_tables_;
    std::unordered_set<NatGatewayId> nat_gateways_;
    std::unordered_set<MeterId> meters_;  // touched
};

}  // namespace sluice::policy
