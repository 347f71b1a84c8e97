// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/connection_engine.hpp"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>

#include "bench/pktgen/find_stamp.hpp"

namespace sluice::pktgen {
namespace {

constexpr std::uint64_t kOpenAtOnce = 256;
constexpr double kDrainSeconds = 0.5;

}  // namespace

ConnectionEngine::ConnectionEngine(const Profile& profile, const Network& network,
                                   std::vector<Link> links, Progress& progress)
    : links_(std::move(links)),
      progress_(progress),
      numbering_(profile),
      templates_(profile, network, link_macs(links_)),
      connections_(profile.flows.count) {
    places_.reserve(numbering_.count());
    for (std::uint32_t i = 0; i < numbering_.count(); ++i)
        places_.emplace_back(network.expected(numbering_.flow(i), numbering_.way(i)));
}

Result<std::unique_ptr<ConnectionEngine>> ConnectionEngine::create(const Profile& profile,
                                                                   const Network& network,
                                                                   std::vector<Link> links,
                                                                   Progress& progress) {
    const std::uint16_t device = links[0].device;
    auto engine = std::unique_ptr<ConnectionEngine>(
        new ConnectionEngine(profile, network, std::move(links), progress));
    auto pool = make_send_pool(device, engine->templates_.stride());
    if (!pool) return pool.error();
    engine->pool_ = *pool;
    return engine;
}

ConnectionEngine::~ConnectionEngine() {
    rte_mempool_free(pool_);
}

void ConnectionEngine::send(const Segment& segment) {
    ++measured_.sent;
    rte_mbuf* packet = rte_pktmbuf_alloc(pool_);
    if (packet == nullptr) {
        ++measured_.refused;
        return;
    }
    const std::uint32_t lane = numbering_.of(segment.flow, segment.way);
    const std::uint16_t size =
        templates_.write_segment(rte_pktmbuf_mtod(packet, std::uint8_t*), lane, segment.sequence,
                                 segment.acknowledgement, segment.flags);
    packet->data_len = size;
    packet->pkt_len = size;
    const auto link = static_cast<std::size_t>(templates_.side(lane));
    Burst& burst = bursts_[link];
    burst.packets[burst.count++] = packet;
    if (burst.count == kBurst) flush(link);
}

void ConnectionEngine::flush(std::size_t link) {
    Burst& burst = bursts_[link];
    if (burst.count == 0) return;
    const std::uint16_t taken =
        rte_eth_tx_burst(links_[link].device, 0, burst.packets.data(), burst.count);
    if (taken < burst.count) {
        measured_.refused += burst.count - taken;
        rte_pktmbuf_free_bulk(burst.packets.data() + taken, burst.count - taken);
    }
    burst.count = 0;
}

void ConnectionEngine::receive() {
    for (std::size_t link = 0; link < links_.size(); ++link) {
        std::array<rte_mbuf*, kBurst> packets;
        const std::uint16_t count =
            rte_eth_rx_burst(links_[link].device, 0, packets.data(), kBurst);
        const std::uint64_t now = rte_rdtsc();
        for (std::uint16_t i = 0; i < count; ++i) take(link, packets[i], now);
        if (count != 0) rte_pktmbuf_free_bulk(packets.data(), count);
    }
}

void ConnectionEngine::take(std::size_t link, rte_mbuf* packet, std::uint64_t now) {
    const std::span<const std::uint8_t> frame{rte_pktmbuf_mtod(packet, const std::uint8_t*),
                                              packet->data_len};
    const auto found = locate(frame);
    if (!found || found->protocol != static_cast<std::uint8_t>(Protocol::tcp)) {
        if (!answer_neighbour(links_[link], pool_, frame)) ++measured_.foreign;
        return;
    }
    if (!checksums_ok(frame, *found)) {
        ++measured_.corrupt;
        return;
    }
    const std::uint8_t* header = frame.data() + found->l4;
    const auto answer = connections_.arrive(
        wire::load32(header + wire::tcp::kSequence).host(),
        wire::load32(header + wire::tcp::kAcknowledgement).host(), header[wire::tcp::kFlags]);
    if (answer.opened) measured_.duration.add(now - *answer.opened);
    if (arrivals_ && answer.arrived) {
        const Place& place = places_[numbering_.of(answer.arrived->flow, answer.arrived->way)];
        if (!place.is_of(frame, *found, static_cast<Side>(link))) ++measured_.misdelivered;
    }
    if (answer.next) send(*answer.next);
}

ConnectionsMeasured ConnectionEngine::run(const ConnectionTrial& trial) {
    measured_ = ConnectionsMeasured{};
    measured_.asked = trial.rate;
    connections_.begin();
    arrivals_ = trial.arrivals;
    const auto hertz = static_cast<double>(rte_get_tsc_hz());
    measured_.hertz = hertz;
    const std::uint64_t started = rte_rdtsc();
    const auto cycles = [&](double seconds) { return static_cast<std::uint64_t>(seconds * hertz); };
    Pacer pacer(trial.rate, hertz, started);
    std::uint64_t left = trial.connections != 0 ? trial.connections : UINT64_MAX;
    std::uint64_t now = started;
    while (left != 0 && now - started < cycles(trial.seconds) &&
           !progress_.stop.load(std::memory_order_relaxed)) {
        receive();
        now = rte_rdtsc();
        std::uint64_t due = pacer.due(now, std::min<std::uint64_t>(left, kBurst));
        if (trial.rate == 0)
            due = std::min(due, kOpenAtOnce - std::min(kOpenAtOnce, connections_.unfinished()));
        for (std::uint64_t i = 0; i < due; ++i) send(connections_.open(now));
        pacer.sent(due);
        left -= due;
        for (std::size_t link = 0; link < links_.size(); ++link) flush(link);
        progress_.sent.store(connections_.counts().opened, std::memory_order_relaxed);
        progress_.received.store(connections_.counts().completed, std::memory_order_relaxed);
    }
    measured_.seconds = static_cast<double>(rte_rdtsc() - started) / hertz;
    const std::uint64_t sent = rte_rdtsc();
    while (rte_rdtsc() - sent < cycles(kDrainSeconds) && connections_.unfinished() != 0) {
        receive();
        for (std::size_t link = 0; link < links_.size(); ++link) flush(link);
    }
    measured_.counts = connections_.counts();
    measured_.skipped = pacer.skipped();
    return measured_;
}

}  // namespace sluice::pktgen
