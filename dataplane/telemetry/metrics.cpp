// SPDX-License-Identifier: Apache-2.0
#include "dataplane/telemetry/metrics.hpp"

#include <boost/json/serialize.hpp>

#include "dataplane/telemetry/open_metrics.hpp"
#include "dataplane/telemetry/totals.hpp"

namespace sluice::telemetry {
namespace {

// Calls `visit(label, slot)` for the outside ("0") and every open VPC.
template <class Visit>
void visit_zones(const Facts& facts, Visit visit) {
    visit(std::string("0"), policy::ZoneSlot{0});
    facts.tables.store.current().core.vpcs.visit([&](const policy::VpcRecord& record) {
        visit(std::to_string(record.key.number.value), record.slot);
        return true;
    });
}

void write_ports(OpenMetrics& out, const Facts& facts) {
    out.counter("sluice_port_packets", "Frames received from and handed to the port's device.");
    for (const auto& port : facts.ports.all()) {
        const auto sum = facts.counters.port(port.id);
        out.sample({{"port", port.name}, {"direction", "rx"}}, sum.received);
        out.sample({{"port", port.name}, {"direction", "tx"}}, sum.sent);
    }
    out.counter("sluice_port_bytes", "Octets of these frames.");
    for (const auto& port : facts.ports.all()) {
        const auto sum = facts.counters.port(port.id);
        out.sample({{"port", port.name}, {"direction", "rx"}}, sum.received_octets);
        out.sample({{"port", port.name}, {"direction", "tx"}}, sum.sent_octets);
    }
    out.counter("sluice_port_rx_missed", "Frames the device dropped because nobody took them.");
    for (const auto& port : facts.ports.all())
        out.sample({{"port", port.name}}, facts.ports.counters(port.id).rx_missed);
    out.gauge("sluice_port_up", "Whether the link is up.");
    for (const auto& port : facts.ports.all())
        out.sample({{"port", port.name}}, std::uint64_t{facts.ports.link(port.id).up});
}

void write_zones(OpenMetrics& out, const Facts& facts) {
    out.counter("sluice_drops", "Packets dropped, by reason and VPC (0: the outside).");
    visit_zones(facts, [&](const std::string& vpc, policy::ZoneSlot slot) {
        const auto sum = facts.counters.zone(slot);
        for (std::size_t i = 1; i < kDropReasons; ++i)
            if (sum.drops[i] != 0)
                out.sample({{"reason", label(static_cast<DropReason>(i))}, {"vpc", vpc}},
                           sum.drops[i]);
    });
    out.gauge("sluice_flows", "Live connections.");
    visit_zones(facts, [&](const std::string& vpc, policy::ZoneSlot slot) {
        out.sample({{"vpc", vpc}}, facts.counters.zone(slot).connections());
    });
    const auto& sessions = facts.tables.sessions;
    const auto each_family = [&](auto value) {
        visit_zones(facts, [&](const std::string& vpc, policy::ZoneSlot slot) {
            const auto use = sessions.limits.use(slot.value);
            const std::array free = {sessions.ipv4.available(), sessions.ipv6.available()};
            for (std::size_t i = 0; i < free.size(); ++i)
                out.sample(
                    {{"vpc", vpc}, {"family", i == 0 ? "ipv4" : "ipv6"}},
                    std::uint64_t{value(use, i, sessions.limits.vpc_limits(slot.value, free[i]))});
        });
    };
    using Use = session::Limits::Use;
    out.gauge("sluice_flows_limit", "Connections the VPC may have now; follows what is free.");
    each_family([](const Use&, std::size_t, const SessionLimits& may) { return may.connections; });
    out.gauge("sluice_flows_half_open", "Live connections that nobody has answered yet.");
    each_family(
        [](const Use& use, std::size_t i, const SessionLimits&) { return use.half_open[i]; });
    out.gauge("sluice_flows_half_open_limit", "Of these the VPC may have so many now.");
    each_family([](const Use&, std::size_t, const SessionLimits& may) { return may.half_open; });
    out.gauge("sluice_connection_rate_limit", "New connections a second the VPC may try.");
    visit_zones(facts, [&](const std::string& vpc, policy::ZoneSlot slot) {
        const auto may = sessions.limits.vpc_limits(slot.value, 0);
        out.sample({{"vpc", vpc}}, std::uint64_t{may.per_second});
    });
    out.gauge("sluice_connection_rate", "New connections the VPC tried in the last whole second.");
    visit_zones(facts, [&](const std::string& vpc, policy::ZoneSlot slot) {
        out.sample({{"vpc", vpc}},
                   std::uint64_t{sessions.limits.use(slot.value, facts.now()).per_second});
    });
    out.gauge("sluice_vpc_fragments_held", "Fragments that wait, by VPC (0: from outside).");
    visit_zones(facts, [&](const std::string& vpc, policy::ZoneSlot slot) {
        out.sample({{"vpc", vpc}}, std::uint64_t{sessions.fragments.held(slot.value)});
    });
    out.gauge("sluice_vpc_fragments_limit", "Of these the VPC may have so many.");
    visit_zones(facts, [&](const std::string& vpc, policy::ZoneSlot slot) {
        out.sample({{"vpc", vpc}}, std::uint64_t{sessions.fragments.vpc_bound(slot.value)});
    });
    out.counter("sluice_connections_evicted",
                "Connections, unanswered or closed, ended early to make room for new ones.");
    visit_zones(facts, [&](const std::string& vpc, policy::ZoneSlot slot) {
        out.sample({{"vpc", vpc}}, facts.counters.zone(slot).connections_evicted);
    });
    out.counter("sluice_connections_created", "Connections set up.");
    visit_zones(facts, [&](const std::string& vpc, policy::ZoneSlot slot) {
        out.sample({{"vpc", vpc}}, facts.counters.zone(slot).connections_created);
    });
    out.gauge("sluice_generation", "Number of the last policy commit that concerned the VPC.");
    const auto changed = facts.tables.store.changed();
    visit_zones(facts, [&](const std::string& vpc, policy::ZoneSlot slot) {
        out.sample({{"vpc", vpc}},
                   std::uint64_t{changed[slot.value].load(std::memory_order_relaxed)});
    });
}

void write_tables(OpenMetrics& out, const Facts& facts) {
    const auto& snapshot = facts.tables.store.current();
    out.gauge("sluice_table_entries", "Entries of an OpenFlow table.");
    for (const auto* table : facts.pipeline.tables())
        out.sample({{"table", table->name}},
                   std::uint64_t{snapshot.tables[table->id].entries.size()});
    out.gauge("sluice_table_capacity", "Entries the table may hold.");
    for (const auto* table : facts.pipeline.tables())
        out.sample({{"table", table->name}}, std::uint64_t{table->capacity});
    out.gauge("sluice_tables_stale",
              "1: the tables are those of the disk, and no controller has compared them yet.");
    out.sample({}, std::uint64_t{facts.freshness == Freshness::stale});
}

void write_workers(OpenMetrics& out, const Facts& facts) {
    out.gauge("sluice_worker_busy_ratio", "Share of time spent on packets since the last scrape.");
    const auto count = static_cast<unsigned>(facts.counters.workers().size());
    for (unsigned worker = 0; worker < count; ++worker)
        out.sample({{"worker", std::to_string(worker)}}, facts.counters.busy_ratio(worker));
    out.counter("sluice_worker_walks", "First packets judged, and connections judged again.");
    for (unsigned worker = 0; worker < count; ++worker) {
        const auto& counters = *facts.counters.workers()[worker];
        const auto number = std::to_string(worker);
        out.sample({{"worker", number}, {"kind", "first"}}, counters.walks.read());
        out.sample({{"worker", number}, {"kind", "again"}}, counters.rewalks.read());
    }
    out.counter(
        "sluice_worker_answers",
        "What the gateway itself said: ARP, ND, echo replies and ICMP errors; and ICMP errors "
        "that it did not send because of their rate.");
    for (unsigned worker = 0; worker < count; ++worker) {
        const auto& counters = *facts.counters.workers()[worker];
        const auto number = std::to_string(worker);
        out.sample({{"worker", number}, {"kind", "sent"}}, counters.answers.read());
        out.sample({{"worker", number}, {"kind", "suppressed"}}, counters.answers_limited.read());
    }
}

http::Response plain(unsigned status, std::string body) {
    http::Response response;
    response.status = status;
    response.content_type = "text/plain; charset=utf-8";
    response.body = std::move(body);
    return response;
}

}  // namespace

std::string metrics(const Facts& facts) {
    OpenMetrics out;
    write_ports(out, facts);
    write_zones(out, facts);
    out.gauge("sluice_sessions_free", "Connections for which there is room, about.");
    out.sample({{"family", "ipv4"}}, std::uint64_t{facts.tables.sessions.ipv4.available()});
    out.sample({{"family", "ipv6"}}, std::uint64_t{facts.tables.sessions.ipv6.available()});
    out.gauge("sluice_sessions_capacity", "Connections the session tables may hold.");
    out.sample({}, std::uint64_t{facts.tables.sessions.ipv4.capacity()} +
                       facts.tables.sessions.ipv6.capacity());
    out.gauge("sluice_fragmented_datagrams", "Datagrams of which fragments are on their way.");
    out.sample({}, std::uint64_t{facts.tables.sessions.fragments.datagrams()});
    out.gauge("sluice_fragments_held", "Fragments that wait for the first one of their datagram.");
    out.sample({}, std::uint64_t{facts.tables.sessions.fragments.held()});
    write_nat(out, facts);
    write_tables(out, facts);
    write_workers(out, facts);
    return out.finish();
}

std::string health(const Facts& facts) {
    const auto reach = facts.tables.reachability.counts();
    return boost::json::serialize(
        boost::json::object{{"status", "ok"},
                            {"name", facts.name},
                            {"generation", facts.tables.store.current().generation.value},
                            {"stale", facts.freshness == Freshness::stale},
                            {"sessions", live_connections(facts)},
                            {"hosts", reach.hosts},
                            {"hosts_unreachable", reach.unreachable_hosts}});
}

http::Response respond(const Facts& facts, const http::Request& request) {
    if (request.path != "/metrics" && request.path != "/health")
        return plain(404, "/metrics and /health are here\n");
    if (request.method != "GET" && request.method != "HEAD") {
        auto response = plain(405, "GET only\n");
        response.headers.push_back({"Allow", "GET, HEAD"});
        return response;
    }
    http::Response response;
    if (request.path == "/metrics") {
        response.content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        response.body = metrics(facts);
    } else {
        response.body = health(facts);
    }
    return response;
}

}  // namespace sluice::telemetry
