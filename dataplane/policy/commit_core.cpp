// SPDX-License-Identifier: Apache-2.0
// How the core's tables change: vni, route, endpoint, host.
#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "dataplane/openflow/bounds.hpp"
#include "dataplane/openflow/tables.hpp"
#include "dataplane/policy/commit.hpp"

namespace sluice::policy {

static_assert(kMaximumGroups == openflow::kMaximumGroups &&
              kMaximumVteps == openflow::kMaximumVteps);

namespace {

using openflow::EndpointRow;
using openflow::HostRow;
using openflow::RouteRow;
using openflow::VniRow;

Error conflict(std::string what, std::string path) {
    return {Error::Code::conflict, std::move(what), std::move(path)};
}

EndpointRecord record_of(const EndpointRow& row) {
    EndpointRecord record;
    record.key = {row.vpc, row.address};
    record.endpoint = row.endpoint;
    record.subnet = row.subnet;
    record.host = row.host;
    record.mac = row.mac;
    record.group_count = static_cast<std::uint8_t>(row.groups.size());
    std::copy(row.groups.begin(), row.groups.end(), record.group_array.begin());
    record.cookie = row.cookie;
    return record;
}

}  // namespace

Result<void> Commit::apply_core(std::uint8_t table, std::span<const EntryChange> changes) {
    switch (table) {
        case openflow::kVni:
            return apply_vnis(changes);
        case openflow::kRoute:
            return apply_routes(changes);
        case openflow::kEndpoint:
            return apply_endpoints(changes);
        case openflow::kHost:
            return apply_hosts(changes);
        default:
            return {};
    }
}

Result<void> Commit::apply_vnis(std::span<const EntryChange> changes) {
    std::vector<VniRow> puts;
    for (const EntryChange& change : changes) {
        std::optional<VniRow> after;
        if (change.after != nullptr) {
            auto row = VniRow::decode(*change.after);
            if (!row) return row.error();
            after = *std::move(row);
        }
        if (change.before != nullptr) {
            const auto row = VniRow::decode(*change.before);
            if (!row) return row.error();
            const VpcRecord vpc = *next_.vpcs.find(row->vpc);
            // Its settings changed: it keeps its slot.
            if (after && after->vpc == row->vpc) {
                change_vpc(vpc, *after);
                continue;
            }
            next_.vnis.remove(row->vni);
            next_.vpcs.remove(row->vpc);
            delta_.vpcs.push_back({vpc, std::nullopt});
            released_.zones.push_back(vpc.slot);
            concerns(row->vpc);
        }
        if (after) puts.push_back(*std::move(after));
    }
    for (const VniRow& row : puts) {
        if (next_.vpcs.find(row.vpc) != nullptr)
            return conflict("the VPC is open under another VNI", "vni.source_vpc");
        const ZoneSlot slot = indexes_.zones.allocate();
        if (!slot) return Error{Error::Code::exhausted, "no more VPCs can be open at once", "vni"};
        taken_.zones.push_back(slot);
        const VpcRecord vpc{row.vpc, row.vni, slot, row.settings, row.cookie};
        next_.vpcs.put(vpc);
        next_.vnis.put({row.vni, vpc});
        delta_.vpcs.push_back({std::nullopt, vpc});
        concerns(row.vpc);
    }
    return {};
}

void Commit::change_vpc(const VpcRecord& before, const VniRow& row) {
    VpcRecord after = before;
    // The one setting that flows carry with them.
    constexpr auto kCheck = openflow::Setting::tcp_window_check;
    if (before.settings.get(kCheck) != row.settings.get(kCheck)) concerns(row.vpc);
    after.settings = row.settings;
    after.cookie = row.cookie;
    next_.vpcs.put(after);
    next_.vnis.put({row.vni, after});
    delta_.vpcs.push_back({before, after});
}

Result<void> Commit::apply_routes(std::span<const EntryChange> changes) {
    std::unordered_map<RouteTableId, std::map<Prefix, RouteRow>> tables;
    const auto rows_of = [&](RouteTableId id) -> std::map<Prefix, RouteRow>& {
        const auto [place, added] = tables.try_emplace(id);
        if (!added) return place->second;
        if (const RouteTableRecord* there = next_.route_tables.find(id))
            for (const RouteRow& row : there->routes->rows())
                place->second.emplace(row.destination, row);
        return place->second;
    };
    for (const EntryChange& change : changes) {
        const auto row = RouteRow::decode(change.entry());
        if (!row) return row.error();
        auto& rows = rows_of(row->table);
        if (change.before != nullptr) {
            const auto before = RouteRow::decode(*change.before);
            if (!before) return before.error();
            lead(*before, -1);
        }
        if (change.after != nullptr) lead(*row, 1);
        if (change.after != nullptr)
            rows.insert_or_assign(row->destination, *row);
        else
            rows.erase(row->destination);
        route_tables_.insert(row->table);
    }
    for (const auto& [id, rows] : tables) {
        if (rows.empty()) {
            next_.route_tables.remove(id);
            continue;
        }
        std::vector<RouteRow> list;
        list.reserve(rows.size());
        for (const auto& [destination, row] : rows) list.push_back(row);
        next_.route_tables.put({id, std::make_shared<const RouteTable>(std::move(list))});
    }
    return {};
}

// An endpoint that changes in place keeps its indexes, so that flows to it follow.
Result<void> Commit::apply_endpoints(std::span<const EntryChange> changes) {
    std::vector<EndpointRow> puts;
    for (const EntryChange& change : changes) {
        std::optional<EndpointRow> after;
        if (change.after != nullptr) {
            auto row = EndpointRow::decode(*change.after);
            if (!row) return row.error();
            after = *std::move(row);
            puts.push_back(*after);
        }
        if (change.before == nullptr) continue;
        const auto before = EndpointRow::decode(*change.before);
        if (!before) return before.error();
        for (const GroupId group : before->groups)
            use({UsedKey::Kind::group, group.value}, before->vpc, -1);
        if (!after || after->endpoint != before->endpoint) remove_endpoint(*before);
    }
    for (const EndpointRow& row : puts)
        if (const auto put = put_endpoint(row); !put) return put.error();
    return {};
}

void Commit::remove_endpoint(const EndpointRow& row) {
    const EndpointRecord record = *next_.endpoints.find({row.vpc, row.address});
    next_.endpoints.remove(record.key);
    next_.endpoint_addresses.remove({row.endpoint, row.address.family()});
    released_.adjacencies.push_back(record.routed);
    released_.adjacencies.push_back(record.bridged);
    delta_.endpoints.push_back({record, std::nullopt});
    concerns(row.vpc);
}

Result<void> Commit::put_endpoint(const EndpointRow& row) {
    EndpointRecord record = record_of(row);
    const EndpointKey by_number{row.endpoint, row.address.family()};
    Change<EndpointRecord> change;
    if (const EndpointRecord* there = next_.endpoints.find(record.key)) {
        record.routed = there->routed;
        record.bridged = there->bridged;
        change.before = *there;
    } else {
        if (next_.endpoint_addresses.find(by_number) != nullptr)
            return conflict("the endpoint has another address of this family",
                            "endpoint.destination_endpoint");
        for (AdjacencyIndex* index : {&record.routed, &record.bridged}) {
            *index = indexes_.adjacencies.allocate();
            if (!*index)
                return Error{Error::Code::exhausted, "no adjacency is free for another endpoint",
                             "endpoint"};
            taken_.adjacencies.push_back(*index);
        }
        next_.endpoint_addresses.put({by_number, record.key});
    }
    for (const GroupId group : row.groups) use({UsedKey::Kind::group, group.value}, row.vpc, 1);
    next_.endpoints.put(record);
    change.after = record;
    delta_.endpoints.push_back(change);
    concerns(row.vpc);
    return {};
}

// A host's move is reachability: it concerns no VPC's policy.
Result<void> Commit::apply_hosts(std::span<const EntryChange> changes) {
    const auto count = [&](const HostRecord& host, bool add) {
        for (const IpAddress& address : host.vteps) {
            if (address.is_none()) continue;
            const VtepRecord* there = next_.vteps.find({address});
            const std::uint32_t hosts = (there == nullptr ? 0 : there->hosts) + (add ? 1U : ~0U);
            if (hosts == 0)
                next_.vteps.remove({address});
            else
                next_.vteps.put({{address}, hosts});
        }
    };
    for (const EntryChange& change : changes) {
        Change<HostRecord> moved;
        if (change.before != nullptr) {
            const auto row = HostRow::decode(*change.before);
            if (!row) return row.error();
            moved.before = *next_.hosts.find(row->host);
            count(*moved.before, false);
            next_.hosts.remove(row->host);
        }
        if (change.after != nullptr) {
            const auto row = HostRow::decode(*change.after);
            if (!row) return row.error();
            HostRecord host;
            host.key = row->host;
            std::copy(row->vteps.begin(), row->vteps.end(), host.vteps.begin());
            host.cookie = row->cookie;
            count(host, true);
            next_.hosts.put(host);
            moved.after = host;
        }
        delta_.hosts.push_back(moved);
    }
    return {};
}

}  // namespace sluice::policy
