// SPDX-License-Identifier: Apache-2.0
// The gateway as the OpenFlow switch sees it.
#include <boost/asio/post.hpp>
#include <utility>

#include "dataplane/control/clock.hpp"
#include "dataplane/control/gateway.hpp"
#include "dataplane/policy/explain.hpp"
#include "dataplane/telemetry/queries.hpp"

namespace sluice::control {

std::uint64_t Gateway::datapath_id() const {
    // FNV-1a over the name, below the 16 bits that OpenFlow leaves to the implementer.
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char c : config_.name)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    return (hash ^ hash >> 48) & 0xffffffffffffULL;
}

std::vector<openflow::PortInfo> Gateway::ports() const {
    std::vector<openflow::PortInfo> result;
    for (const auto& port : ports_->all()) {
        const auto link = ports_->link(port.id);
        const auto sum = counters_->port(port.id);
        const auto device = ports_->counters(port.id);
        result.push_back({.port = port.id,
                          .name = port.name,
                          .mac = port.mac,
                          .link_up = link.up,
                          .speed_mbps = link.speed_mbps,
                          .rx_packets = sum.received,
                          .tx_packets = sum.sent,
                          .rx_bytes = sum.received_octets,
                          .tx_bytes = sum.sent_octets,
                          .rx_dropped = device.rx_missed + device.rx_no_buffer,
                          .tx_dropped = device.tx_errors});
    }
    return result;
}

std::span<const openflow::TableSchema* const> Gateway::tables() const {
    return pipeline_.tables();
}

const openflow::Entry* Gateway::find(const openflow::EntryKey& key) const {
    return tables_->store.current().find(key);
}

void Gateway::visit(std::uint8_t table, const openflow::EntryKey* after,
                    const std::function<bool(const openflow::Entry&)>& visit) const {
    if (table >= policy::kTables) return;
    const auto& entries = tables_->store.current().tables[table].entries;
    const auto each = [&](const policy::EntryRecord& record) { return visit(record.entry); };
    if (after == nullptr)
        entries.visit(each);
    else
        entries.visit_after(*after, each);
}

// Which entries decided over a connection is kept with it, by cookie.
bool Gateway::counted(const openflow::Entry& entry) const {
    switch (entry.key.table) {
        case openflow::kSource:
        case openflow::kEgressRule:
        case openflow::kRoute:
        case openflow::kElasticIp:
        case openflow::kNatGateway:
        case openflow::kPublicAddress:
        case openflow::kEndpoint:
        case openflow::kIngressRule:
            return entry.cookie != Cookie{};
        default:
            return false;
    }
}

openflow::EntryStats Gateway::stats(const openflow::Entry& entry) const {
    openflow::EntryStats stats;
    if (const auto* record = tables_->store.current().record(entry.key))
        stats.age = neighbour::Clock::now() - record->added;
    if (counted(entry)) {
        const auto count = attribution_.of(entry.cookie);
        stats.packets = count.packets;
        stats.bytes = count.octets;
    } else if (entry.key.table == openflow::kPort) {
        if (const auto row = openflow::PortRow::decode(entry)) {
            const auto sum = counters_->port(row->port);
            stats.packets = sum.received;
            stats.bytes = sum.received_octets;
        }
    }
    return stats;
}

void Gateway::refresh_stats(const std::function<void()>& done) {
    if (attribution_.fresh(worker_nanoseconds())) return done();
    want_stats_.push_back(done);
    if (want_stats_.size() == 1) refresh_step();
}

void Gateway::refresh_step() {
    if (attribution_.refresh(tables_->sessions, tables_->qsbr, tables_->reader(),
                             worker_nanoseconds()))
        return boost::asio::post(loop_, [this] { refresh_step(); });
    for (const auto& done : std::exchange(want_stats_, {})) done();
}

std::uint32_t Gateway::count(std::uint8_t table) const {
    if (table >= policy::kTables) return 0;
    return static_cast<std::uint32_t>(tables_->store.current().tables[table].entries.size());
}

std::vector<openflow::Meter> Gateway::meters() const {
    return tables_->store.current().meters();
}

std::vector<openflow::TableDigest> Gateway::digests() const {
    freshness_ = telemetry::Freshness::current;
    return tables_->store.current().digests();
}

std::optional<openflow::Problem> Gateway::check(const openflow::Entry& entry) const {
    return tables_->store.check(entry);
}

void Gateway::commit(openflow::Changes changes, std::function<void(Result<void>)> done) {
    auto token = tables_->commit(changes, state_.get(), neighbour::Clock::now());
    if (!token) return done(token.error());
    freshness_ = telemetry::Freshness::current;
    for (const auto& opened : tables_->take_opened()) {
        counters_->opened(opened.slot);
        samples_.forget(opened.slot);
    }
    waiting_.push_back({*token, std::move(done)});
    // A commit ahead of it in the queue has a timer running.
    if (waiting_.size() == 1) settle();
}

void Gateway::query(std::string_view kind, std::string_view request,
                    std::function<void(Result<std::string>)> done) {
    if (kind == "flows") {
        auto list = telemetry::FlowList::ask(*facts_, request);
        if (!list) return done(list.error());
        return list_flows(std::make_shared<telemetry::FlowList>(*std::move(list)), std::move(done));
    }
    if (kind == "drops") return done(telemetry::drops(*facts_, request));
    if (kind == "limits") return done(telemetry::limits(*facts_, request));
    if (kind == "gateway") return done(telemetry::gateway(*facts_, request));
    if (kind == "explain") return done(policy::explain(tables_->store.current(), request));
    done(Error{Error::Code::unsupported, "expected explain, flows, drops, limits or gateway", ""});
}

void Gateway::list_flows(const std::shared_ptr<telemetry::FlowList>& list,
                         std::function<void(Result<std::string>)> done) {
    if (!list->step(*facts_)) return done(list->take());
    boost::asio::post(loop_, [this, list, done = std::move(done)]() mutable {
        list_flows(list, std::move(done));
    });
}

}  // namespace sluice::control
