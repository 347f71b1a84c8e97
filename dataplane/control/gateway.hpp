// SPDX-License-Identifier: Apache-2.0
// The gateway as a whole: one control thread and its workers.
//
// Purpose: puts the parts together, and is the OpenFlow switch's backend. Start: lock, disk,
// DPDK, ports, last committed tables, workers, sockets; so that packets flow before anybody
// has connected.
// Ownership: owns everything. Threads: the thread that calls `open` and `run` is the control
// thread; workers run on their own cores. Failure of the start: one sentence, nothing left.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "dataplane/config/config.hpp"
#include "dataplane/control/links.hpp"
#include "dataplane/control/nat_log.hpp"
#include "dataplane/control/tables.hpp"
#include "dataplane/http/server.hpp"
#include "dataplane/openflow/backend.hpp"
#include "dataplane/openflow/switch.hpp"
#include "dataplane/port/eal.hpp"
#include "dataplane/port/port.hpp"
#include "dataplane/state/state.hpp"
#include "dataplane/telemetry/attribution.hpp"
#include "dataplane/telemetry/counters.hpp"
#include "dataplane/telemetry/facts.hpp"
#include "dataplane/telemetry/queries.hpp"
#include "dataplane/telemetry/samples.hpp"
#include "dataplane/worker/worker.hpp"

namespace sluice::control {

class Gateway final : public openflow::Backend {
  public:
    static Result<std::unique_ptr<Gateway>> open(const config::Config& config,
                                                 const policy::Pipeline& pipeline);
    ~Gateway() override;

    // Until SIGINT or SIGTERM.
    void run();

    // openflow::Backend
    [[nodiscard]] std::string name() const override { return config_.name; }
    [[nodiscard]] std::uint64_t datapath_id() const override;
    [[nodiscard]] std::vector<openflow::PortInfo> ports() const override;
    [[nodiscard]] std::span<const openflow::TableSchema* const> tables() const override;
    [[nodiscard]] const openflow::Entry* find(const openflow::EntryKey& key) const override;
    void visit(std::uint8_t table, const openflow::EntryKey* after,
               const std::function<bool(const openflow::Entry&)>& visit) const override;
    [[nodiscard]] openflow::EntryStats stats(const openflow::Entry& entry) const override;
    [[nodiscard]] std::uint32_t count(std::uint8_t table) const override;
    [[nodiscard]] std::vector<openflow::Meter> meters() const override;
    [[nodiscard]] std::vector<openflow::TableDigest> digests() const override;
    [[nodiscard]] std::optional<openflow::Problem> check(
        const openflow::Entry& entry) const override;
    void commit(openflow::Changes changes, std::function<void(Result<void>)> done) override;
    void refresh_stats(const std::function<void()>& done) override;
    void query(std::string_view kind, std::string_view request,
               std::function<void(Result<std::string>)> done) override;

  private:
    Gateway(const config::Config& config, const policy::Pipeline& pipeline);
    Result<void> start();
    Result<void> restore(neighbour::Time now);
    void start_workers();
    Result<void> start_sockets();
    void stop_workers();

    void housekeep();
    void take_messages(neighbour::Time now);
    void settle();
    void refresh_step();
    void list_flows(const std::shared_ptr<telemetry::FlowList>& list,
                    std::function<void(Result<std::string>)> done);
    [[nodiscard]] bool counted(const openflow::Entry& entry) const;

    // Commits whose grace period is not over.
    struct Waiting {
        reclaim::Qsbr::Token token;
        std::function<void(Result<void>)> done;
    };

    const config::Config config_;
    const policy::Pipeline& pipeline_;
    std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
    boost::asio::io_context loop_{1};
    boost::asio::signal_set signals_{loop_};
    boost::asio::steady_timer housekeeping_{loop_}, settling_{loop_};

    std::optional<state::Lock> lock_;
    std::unique_ptr<state::State> state_;
    std::unique_ptr<NatLog> nat_log_;
    std::uint64_t blocks_lost_ = 0;  // by the workers' rings, as far as the log says
    std::unique_ptr<port::Eal> eal_;
    std::unique_ptr<port::Ports> ports_;
    std::unique_ptr<Tables> tables_;
    worker::Shared shared_;
    std::vector<std::unique_ptr<worker::Worker>> workers_;
    std::optional<Links> links_;
    bool running_ = false;

    // A controller that asks for digests compares, and sends what differs: no longer stale.
    mutable telemetry::Freshness freshness_ = telemetry::Freshness::current;
    std::deque<Waiting> waiting_;

    telemetry::Attribution attribution_;
    std::vector<std::function<void()>> want_stats_;  // until the counts are fresh
    telemetry::Samples samples_;
    std::optional<telemetry::Counters> counters_;
    std::optional<telemetry::Facts> facts_;

    std::unique_ptr<openflow::Switch> switch_;
    std::unique_ptr<http::Server> telemetry_;
};

}  // namespace sluice::control
