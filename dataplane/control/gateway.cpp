// SPDX-License-Identifier: Apache-2.0
#include "dataplane/control/gateway.hpp"

#include <rte_cycles.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>

#include "dataplane/control/clock.hpp"
#include "dataplane/policy/snapshot.hpp"
#include "dataplane/telemetry/metrics.hpp"

namespace sluice::control {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

constexpr auto kHousekeeping = 5ms;
// How often a commit that waits for workers is looked at. A busy worker passes a quiescent
// state with every burst; an idle one is not waited for.
constexpr auto kSettle = 100us;

}  // namespace

Gateway::Gateway(const config::Config& config, const policy::Pipeline& pipeline)
    : config_(config), pipeline_(pipeline) {}

Result<std::unique_ptr<Gateway>> Gateway::open(const config::Config& config,
                                               const policy::Pipeline& pipeline) {
    auto gateway = std::unique_ptr<Gateway>(new Gateway(config, pipeline));
    if (auto started = gateway->start(); !started) return started.error();
    return gateway;
}

Gateway::~Gateway() {
    switch_.reset();
    telemetry_.reset();
    stop_workers();
}

Result<void> Gateway::start() {
    auto lock = state::Lock::take(config_.state_dir, config_.name);
    if (!lock) return lock.error();
    lock_.emplace(std::move(*lock));
    auto state = state::State::open(config_.state_dir);
    if (!state) return state.error();
    state_ = std::move(*state);
    auto nat_log = NatLog::open(config_.state_dir);
    if (!nat_log) return nat_log.error();
    nat_log_ = std::move(*nat_log);
    auto eal = port::Eal::start(config_);
    if (!eal) return eal.error();
    eal_ = std::move(*eal);
    auto ports = port::Ports::open(config_);
    if (!ports) return ports.error();
    ports_ = std::move(*ports);
    const auto now = Steady::now();
    auto tables = Tables::create(config_, ports_->all(), pipeline_, now);
    if (!tables) return tables.error();
    tables_ = std::move(*tables);
    if (auto restored = restore(now); !restored) return restored.error();
    start_workers();
    return start_sockets();
}

// What the disk remembers is committed like any bundle, except that it is not written again.
Result<void> Gateway::restore(neighbour::Time now) {
    auto stored = state_->load();
    if (!stored) return stored.error();
    const auto count = stored->tables.put.size();
    auto committed = tables_->commit(stored->tables, nullptr, now);
    if (!committed)
        return Error{
            Error::Code::unavailable,
            fmt::format("{}/tables.db holds tables that this gateway refuses ({}); move it "
                        "away to start without tables (the controller sends them anew)",
                        config_.state_dir.string(), committed.error().message),
            "state_dir"};
    if (stored->generation == Generation{0}) return {};
    freshness_ = telemetry::Freshness::stale;
    shared_.restarted = worker_nanoseconds();
    spdlog::info("{} table entries restored from disk, stale until a controller compares them",
                 count);
    return {};
}

void Gateway::start_workers() {
    tables_->share(shared_);
    shared_.vteps = config_.vteps;
    shared_.workers = static_cast<unsigned>(config_.workers.size());
    for (const auto& port : ports_->all()) {
        worker::PortFacts facts{.id = port.id,
                                .side = port.role,
                                .mac = port.mac,
                                .addresses = {},
                                .mtu = port.mtu,
                                .multi_segment = port.offloads.tx_multi_segment};
        for (const auto& own : port.addresses) facts.addresses.push_back(own.address);
        shared_.ports.push_back(std::move(facts));
    }
    std::vector<const worker::WorkerCounters*> counters;
    for (unsigned index = 0; index < config_.workers.size(); ++index) {
        worker::WorkerOptions options;
        // Most of the buffers are for packets on their way, however many workers keep some.
        const std::size_t eighth = config_.memory.packet_buffers / config_.workers.size() / 8;
        options.most_waiting =
            static_cast<std::uint16_t>(std::min<std::size_t>(options.most_waiting, eighth));
        options.most_held =
            static_cast<std::uint16_t>(std::min<std::size_t>(options.most_held, eighth));
        options.index = index;
        options.ports = ports_->for_worker(index);
        workers_.push_back(std::make_unique<worker::Worker>(std::move(options), shared_));
        counters.push_back(&workers_.back()->counters());
    }
    counters_.emplace(std::move(counters));
    for (const auto& opened : tables_->take_opened()) counters_->opened(opened.slot);
    links_.emplace(*ports_, tables_->neighbours, tables_->routes,
                   Injection{ports_->for_worker(0).pool, workers_.front()->inject()});
    links_->announce_own(Steady::now());
    facts_.emplace(telemetry::Facts{.name = config_.name,
                                    .tables = *tables_,
                                    .ports = *ports_,
                                    .pipeline = pipeline_,
                                    .counters = *counters_,
                                    .samples = samples_,
                                    .freshness = freshness_,
                                    .nat_log_lost = nat_log_->lost(),
                                    .started = started_,
                                    .now = worker_nanoseconds});
    for (unsigned index = 0; index < workers_.size(); ++index)
        eal_->launch(index, [worker = workers_[index].get()] { worker->run(); });
    running_ = true;
}

void Gateway::stop_workers() {
    if (!running_) return;
    for (auto& worker : workers_) worker->stop();
    eal_->join();
    running_ = false;
}

Result<void> Gateway::start_sockets() {
    if (const auto& listen = config_.telemetry.listen) {
        const auto text = config::to_string(*listen).substr(4);  // without "tcp:"
        const auto address = http::parse_listen_address(text);
        if (!address)
            return Error{address.error().code, address.error().message, "telemetry.listen"};
        auto server = http::Server::listen(
            loop_, *address, {},
            [this](const http::Request& request, const http::Respond& respond) {
                respond(telemetry::respond(*facts_, request));
            });
        if (!server) return Error{server.error().code, server.error().message, "telemetry.listen"};
        telemetry_ = std::move(*server);
    }
    openflow::SwitchSettings settings;
    if (config_.openflow.listen) settings.listen = config::to_string(*config_.openflow.listen);
    for (const auto& controller : config_.openflow.controllers)
        settings.controllers.push_back(config::to_string(controller));
    switch_ = std::make_unique<openflow::Switch>(
        loop_, *this, std::move(settings),
        [](const std::string& sentence) { spdlog::info("openflow: {}", sentence); });
    if (auto started = switch_->start(); !started)
        return Error{started.error().code, started.error().message, "openflow"};
    return {};
}

void Gateway::run() {
    signals_.add(SIGINT);
    signals_.add(SIGTERM);
    signals_.async_wait([this](const boost::system::error_code& error, int) {
        if (!error) loop_.stop();
    });
    housekeep();
    spdlog::info(
        "gateway {} forwards with {} worker(s) on {} memory, {} ms after its start", config_.name,
        workers_.size(), eal_->uses_hugepages() ? "hugepage" : "plain",
        std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - started_).count());
    loop_.run();
    spdlog::info("gateway {} stops", config_.name);
}

void Gateway::housekeep() {
    const auto now = Steady::now();
    take_messages(now);
    if (links_->tick(now) || tables_->neighbours.has_changes()) tables_->follow_neighbours();
    tables_->reclaim();
    housekeeping_.expires_after(kHousekeeping);
    housekeeping_.async_wait([this](const boost::system::error_code& error) {
        if (!error) housekeep();
    });
}

void Gateway::take_messages(neighbour::Time now) {
    // Bounded: what a worker adds meanwhile is the next turn's.
    constexpr unsigned kMost = 4096;
    std::uint64_t blocks_lost = 0;
    for (auto& worker : workers_) {
        worker::NeighbourMessage heard;
        for (unsigned i = 0; i < kMost && worker->neighbours().pop(heard); ++i)
            tables_->neighbours.heard({heard.port, heard.address}, heard.mac, now);
        worker::ConnectionEvent event;
        for (unsigned i = 0; i < kMost && worker->events().pop(event); ++i)
            attribution_.ended(event);
        worker::DropSample sample;
        for (unsigned i = 0; i < kMost && worker->samples().pop(sample); ++i) samples_.add(sample);
        session::BlockEvent block;
        for (unsigned i = 0; i < kMost && worker->blocks().pop(block); ++i)
            nat_log_->write(block, tables_->store.current(), worker_nanoseconds());
        blocks_lost += worker->blocks().lost();
    }
    if (blocks_lost != blocks_lost_) nat_log_->lost(blocks_lost - blocks_lost_);
    blocks_lost_ = blocks_lost;
    nat_log_->flush();
    for (const auto& [before, after] : tables_->take_address_changes()) {
        if (before) links_->withdraw(*before);
        if (after) links_->announce(*after, now);
    }
}

void Gateway::settle() {
    while (!waiting_.empty() && tables_->qsbr.elapsed(waiting_.front().token)) {
        auto done = std::move(waiting_.front().done);
        waiting_.pop_front();
        done({});
    }
    if (waiting_.empty()) return;
    settling_.expires_after(kSettle);
    settling_.async_wait([this](const boost::system::error_code& error) {
        if (!error) settle();
    });
}

}  // namespace sluice::control
