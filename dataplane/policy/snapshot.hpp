// SPDX-License-Identifier: Apache-2.0
// All of policy as one immutable value.
//
// Purpose: what a walk, a dump and `explain` read. A commit builds the next one (store.hpp),
// sharing all that did not change.
// Ownership and threads: the Store owns it. Readers use it between two quiescent states of
// theirs, without locks or counts; only the writer creates and destroys it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/openflow/backend.hpp"
#include "dataplane/policy/nat_ports.hpp"
#include "dataplane/policy/persistent_map.hpp"
#include "dataplane/policy/plan.hpp"
#include "dataplane/policy/records.hpp"

namespace sluice::policy {

class FunctionState;
class Pipeline;

inline constexpr std::size_t kTables = 17;

// One table as OpenFlow sees it.
struct TableEntries {
    PersistentMap<EntryRecord> entries;
    std::uint64_t digest = 0;  // sum of the entries' hashes
};

// The typed state that belongs to no network function.
struct Core {
    PersistentMap<VpcRecord> vpcs;
    PersistentMap<VniRecord> vnis;
    PersistentMap<EndpointRecord> endpoints;
    PersistentMap<EndpointAddress> endpoint_addresses;
    PersistentMap<HostRecord> hosts;
    PersistentMap<VtepRecord> vteps;
    PersistentMap<SubnetRecord> subnets;
    PersistentMap<SenderRecord> senders;
    PersistentMap<RouteTableRecord> route_tables;
    PersistentMap<UsedRecord> used;
    PersistentMap<MeterRecord> meters;
    PersistentMap<NatAddressRecord> nat_addresses;
    PersistentMap<NatRoutesRecord> nat_routes;

    // An address of the endpoint: of this family if it has one, else of the other.
    [[nodiscard]] const EndpointRecord* endpoint(EndpointId endpoint, Family family) const;
};

// Indexes of what lies beyond the uplink; the same for all snapshots.
struct Outside {
    AdjacencyIndex ipv4, ipv6;
    SourceIndex source;
};

class Snapshot {
  public:
    Generation generation;
    Core core;
    std::array<TableEntries, kTables> tables;
    std::vector<std::shared_ptr<const FunctionState>> functions;  // by place in the pipeline
    const Pipeline* pipeline = nullptr;
    Outside outside;
    // The ports that NAT gateways have given out, the same for all snapshots; nullptr: none can
    // be given.
    const NatPorts* nat_ports = nullptr;

    [[nodiscard]] const EntryRecord* record(const openflow::EntryKey& key) const;
    [[nodiscard]] const openflow::Entry* find(const openflow::EntryKey& key) const;
    [[nodiscard]] std::vector<openflow::Meter> meters() const;  // by number
    // Of every table that the pipeline knows, and of the meters as table 0xff.
    [[nodiscard]] std::vector<openflow::TableDigest> digests() const;
};

// Whom a packet comes from, as far as two look-ups tell (a SenderFunction). Addresses that an
// endpoint may use besides its own are not known here.
Sender sender_of(const Snapshot& snapshot, const Packet& packet);
// The slot of the VPC open under this VNI, or 0 (a ZoneFunction).
ZoneSlot zone_of(const Snapshot& snapshot, Vni vni);

}  // namespace sluice::policy
