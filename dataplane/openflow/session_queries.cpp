// SPDX-License-Identifier: Apache-2.0
// What a session answers without changing anything, and its role.
#include <algorithm>
#include <boost/asio/post.hpp>
#include <limits>

#include "dataplane/openflow/dump.hpp"
#include "dataplane/openflow/session.hpp"

namespace sluice::openflow {
namespace {

constexpr std::size_t kDumpQueue = std::size_t{256} << 10;  // octets waiting for the peer
constexpr std::size_t kDumpStep = 512;                      // entries at a time
constexpr std::size_t kSumStep = 8192;                      // entries in a turn of the loop
constexpr std::size_t kGroupFeatures = 40;                  // octets of its reply's body

bool concerns(const FlowRequest& request, const Entry& entry) {
    return !request.output_filter && covers(request.match, entry.key.match) &&
           ((entry.cookie.value ^ request.cookie) & request.cookie_mask) == 0;
}

// The tables that a request names, in descending order.
std::optional<std::vector<std::uint8_t>> tables_of(const Backend& backend, std::uint8_t table) {
    std::vector<std::uint8_t> result;
    for (const TableSchema* schema : backend.tables())
        if (table == kAllTables || table == schema->id) result.push_back(schema->id);
    if (result.empty() && table != kAllTables) return std::nullopt;
    std::ranges::sort(result, std::greater<>{});
    return result;
}

// By number, as a reader expects them.
std::vector<const TableSchema*> sorted_tables(const Backend& backend) {
    const auto tables = backend.tables();
    std::vector<const TableSchema*> result(tables.begin(), tables.end());
    std::ranges::sort(result, {}, &TableSchema::id);
    return result;
}

std::uint8_t table_count(const Backend& backend) {
    std::uint8_t highest = 0;
    for (const TableSchema* schema : backend.tables()) highest = std::max(highest, schema->id);
    return static_cast<std::uint8_t>(highest + 1);
}

}  // namespace

void Session::query(Kind kind, MessageView message) {
    Bytes& out = connection_->out();
    switch (kind) {
        case Kind::features_request:
            return append_features_reply(out, message, context_->backend.datapath_id(),
                                         table_count(context_->backend));
        case Kind::get_config_request:
            return append_config_reply(out, message, config_);
        case Kind::set_config: {
            const auto config = decode_set_config(message);
            if (!config) return refuse(config.error(), message);
            config_ = *config;
            return;
        }
        case Kind::role_request:
            return role(message);
        case Kind::port_mod:
            return refuse(error::kPortModPermission, message);
        case Kind::table_mod:
            return refuse(error::kTableModPermission, message);
        case Kind::error: {
            const auto error = decode_error(message);
            context_->say(connection_->peer() + " reports " +
                          (error ? error->text : "an error that cannot be read"));
            return;
        }
        case Kind::other:
        case Kind::packet_out:
        case Kind::group_mod:
        case Kind::queue_config:
        case Kind::get_async_request:
        case Kind::set_async:
        case Kind::features_reply:
        case Kind::get_config_reply:
        case Kind::barrier_reply:
        case Kind::role_reply:
        case Kind::desc_reply:
        case Kind::flow_reply:
        case Kind::meter_config_reply:
        case Kind::experimenter_reply:
        case Kind::other_reply:
            return refuse(error::kBadType, message);
        default:
            multipart(kind, message);
    }
}

void Session::multipart(Kind kind, MessageView message) {
    Bytes& out = connection_->out();
    const Backend& backend = context_->backend;
    if (has_more_segments(message)) return refuse(error::kMultipartOverflow, message);
    switch (kind) {
        case Kind::desc_request:
            return append_desc_reply(out, message,
                                     {"Sluice", "DPDK", SLUICE_VERSION, "none", backend.name()});
        case Kind::flow_request:
            return start_dump(message, Reply::entries);
        case Kind::aggregate_request:
            return start_dump(message, Reply::aggregate);
        case Kind::table_request: {
            std::vector<TableStats> tables;
            for (const TableSchema* schema : sorted_tables(backend))
                tables.push_back({schema->id, backend.count(schema->id)});
            return append_table_stats_reply(out, message, tables);
        }
        case Kind::port_stats_request:
            return ports(message, true);
        case Kind::port_desc_request:
            return ports(message, false);
        case Kind::table_features_request:
            if (has_body(message)) return refuse(error::kTableFeaturesPermission, message);
            return append_table_features_reply(out, message, sorted_tables(backend));
        case Kind::queue_request:
        case Kind::group_request:
        case Kind::group_desc_request:
            return append_empty_reply(out, message);
        case Kind::group_features_request:
            return append_empty_reply(out, message, kGroupFeatures);
        case Kind::meter_request:
            return meters(message, false);
        case Kind::meter_config_request:
            return meters(message, true);
        case Kind::meter_features_request:
            return append_meter_features_reply(out, message, kMeterCapacity);
        case Kind::experimenter_request:
            return experimenter(message);
        default:
            return refuse(error::kBadMultipart, message);
    }
}

void Session::ports(MessageView message, bool stats) {
    std::vector<PortInfo> ports = context_->backend.ports();
    if (!stats) return append_ports_reply(connection_->out(), message, ports);
    const auto wanted = decode_port_request(message);
    if (!wanted) return refuse(wanted.error(), message);
    if (*wanted != kAllPorts) {
        std::erase_if(ports, [&](const PortInfo& port) { return port.port.value != *wanted; });
        if (ports.empty()) return refuse(error::kBadPort, message);
    }
    append_port_stats_reply(connection_->out(), message, ports);
}

void Session::start_dump(MessageView message, Reply reply) {
    auto request = decode_flow_request(message);
    if (!request) return refuse(request.error(), message);
    auto tables = tables_of(context_->backend, request->table);
    if (!tables) return refuse(error::kBadRequestTableId, message);
    dump_ = std::make_unique<Dump>(*std::move(request), message);
    dump_->tables = *std::move(tables);
    connection_->pause();  // the next request waits for this one's answer
    context_->backend.refresh_stats([weak = weak_from_this(), reply] {
        const auto self = weak.lock();
        if (!self || self->dump_ == nullptr) return;
        if (reply == Reply::aggregate) return self->continue_aggregate();
        self->dump_->ready = true;
        self->continue_dump();
    });
}

// Calls `each` for the next `most` entries at most, of those that concern the request. True: there
// are more.
template <class Each>
bool Session::look_on(std::size_t most, Each each) {
    Dump& dump = *dump_;
    std::size_t looked_at = 0;
    while (!dump.tables.empty() && looked_at < most) {
        bool ended = true;
        context_->backend.visit(dump.tables.back(), dump.after ? &*dump.after : nullptr,
                                [&](const Entry& entry) {
                                    if (looked_at == most) return ended = false;
                                    ++looked_at;
                                    dump.after = entry.key;
                                    if (concerns(dump.request, entry))
                                        each(entry, context_->backend.stats(entry));
                                    return true;
                                });
        if (!ended) break;
        dump.tables.pop_back();
        dump.after.reset();
    }
    return !dump.tables.empty();
}

void Session::continue_dump() {
    while (dump_ != nullptr && dump_->ready && connection_->queued() < kDumpQueue) {
        Dump& dump = *dump_;
        const bool more = look_on(kDumpStep, [&](const Entry& entry, const EntryStats& stats) {
            dump.writer.append(entry, stats);
        });
        dump.writer.take(connection_->out(), more);
        connection_->flush();
        if (more) continue;
        dump_.reset();
        connection_->resume();
    }
}

// A step a turn of the loop. Entries that are not counted add nothing; where none is, the sum is
// not counted either.
void Session::continue_aggregate() {
    Dump& dump = *dump_;
    const bool more = look_on(kSumStep, [&](const Entry&, const EntryStats& stats) {
        ++dump.entries;
        if (stats.packets == kNotCounted) return;
        if (dump.sum.packets == kNotCounted) dump.sum.packets = dump.sum.bytes = 0;
        dump.sum.packets += stats.packets;
        dump.sum.bytes += stats.bytes;
    });
    if (more)
        return boost::asio::post(context_->loop, [weak = weak_from_this()] {
            const auto self = weak.lock();
            if (self && self->dump_ != nullptr) self->continue_aggregate();
        });
    if (dump.entries == 0) dump.sum.packets = dump.sum.bytes = 0;
    append_aggregate_reply(connection_->out(), dump.message, dump.sum, dump.entries);
    dump_.reset();
    connection_->flush();
    connection_->resume();
}

void Session::meters(MessageView message, bool config) {
    const std::uint32_t wanted = decode_meter_request(message);
    RecordWriter writer(message);
    bool found = wanted == kAllMeters;
    for (const Meter& meter : context_->backend.meters()) {
        if (wanted != kAllMeters && meter.id.value != wanted) continue;
        found = true;
        config ? writer.append_config(meter) : writer.append_stats(meter);
    }
    if (!found) return refuse(error::kUnknownMeter, message);
    writer.take(connection_->out(), false);
}

void Session::experimenter(MessageView message) {
    const auto request = decode_experimenter_request(message);
    if (!request) return refuse(request.error(), message);
    if (request->query == Query::digest)
        return append_digest_reply(connection_->out(), message, context_->backend.digests());
    connection_->pause();  // the next request waits for this one's answer
    context_->backend.query(
        to_string(request->query), request->text,
        [weak = weak_from_this(), query = request->query,
         asked = Bytes(message.begin(), message.end())](const Result<std::string>& text) {
            if (const auto self = weak.lock()) self->answer(asked, query, text);
        });
}

void Session::answer(const Bytes& request, Query query, const Result<std::string>& text) {
    if (text) {
        append_experimenter_reply(connection_->out(), request, query, *text);
    } else {
        ++context_->counters.errors;
        append_refusal(connection_->out(), text.error().message, request);
    }
    connection_->flush();
    connection_->resume();
}

// OpenFlow 1.3.5 section 6.3.6.
void Session::role(MessageView message) {
    const auto request = decode_role_request(message);
    if (!request) return refuse(request.error(), message);
    auto& known = context_->role_generation;
    if (request->role == Role::primary || request->role == Role::secondary) {
        // Newer by the distance on a circle: the number may wrap.
        if (known && static_cast<std::int64_t>(request->generation - *known) < 0)
            return refuse(error::kStaleRole, message);
        known = request->generation;
    }
    if (request->role == Role::primary)
        for (Session* other : context_->sessions)
            if (other != this && other->role_ == Role::primary) other->role_ = Role::secondary;
    if (request->role != Role::no_change) role_ = request->role;
    append_role_reply(connection_->out(), message,
                      {role_, known.value_or(std::numeric_limits<std::uint64_t>::max())});
}

}  // namespace sluice::openflow
