// SPDX-License-Identifier: Apache-2.0
// Sends and receives, on one core: the generator's packet path.
//
// Each turn receives from every queue, and sends a burst of what is due. A trial neither allocates
// per packet nor calls the kernel; what it measures is summed up at its end.
// Ownership: refers to progress, which outlives it; has one line of cache for
// each lane and a pool of its own to send from: a buffer's octets behind the headers are zero and
// stay so. Threads: one at a time, with an lcore.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "bench/pktgen/network.hpp"
#include "bench/pktgen/responder.hpp"
#include "bench/pktgen/schedule.hpp"
#include "bench/pktgen/templates.hpp"
#include "bench/pktgen/trial.hpp"
#include "dataplane/wire/result.hpp"

struct rte_mbuf;
struct rte_mempool;

namespace sluice::pktgen {

// A device of the profile, its queue 0.
struct Link {
    std::uint16_t device = 0;
    Responder responder;
};

class Engine {
  public:
    // `links`: the underlay, and the uplink if the profile has one. Their gateways must be known.
    static Result<std::unique_ptr<Engine>> create(const Profile& profile, const Network& network,
                                                  std::vector<Link> links, Progress& progress);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    Measured run(const Trial& trial);
    // Sends the first packet of every flow, and again up to twice where it has not come back, so
    // that replies find their connections. Returns the flows that never arrived.
    std::vector<std::uint32_t> open_flows(double rate);
    // Of the last trial.
    [[nodiscard]] std::span<const Lane> lanes() const { return lanes_; }

  private:
    static constexpr std::uint16_t kBurst = 32;
    struct Burst {
        std::array<rte_mbuf*, kBurst> packets;
        std::uint16_t count = 0;
    };

    Engine(const Profile& profile, const Network& network, std::vector<Link> links,
           Progress& progress);
    void begin(const Trial& trial);
    // Of at most `count`, how many it has sent; fewer without buffers.
    std::uint64_t send(std::uint64_t count);
    void flush(std::size_t link);
    void receive();
    void take(std::size_t link, rte_mbuf* packet, std::uint64_t now);
    void take_other(std::size_t link, std::span<const std::uint8_t> frame);
    void drain(const Trial& trial);
    [[nodiscard]] Measured sum_up(const Trial& trial, double seconds, const Pacer& pacer) const;

    std::vector<Link> links_;
    Progress& progress_;
    Lanes numbering_;
    Schedule schedule_;
    Templates templates_;
    std::vector<Lane> lanes_;
    rte_mempool* pool_ = nullptr;
    std::array<Burst, 2> bursts_;
    // Of the running trial.
    Counts counts_;
    Histogram latency_;
    std::uint64_t started_ = 0;
    bool arrivals_ = true;
    const std::vector<std::uint32_t>* once_ = nullptr;
    std::size_t once_at_ = 0;
};

// Buffers to send from, all octets zero. Each holds `octets`.
Result<rte_mempool*> make_send_pool(std::uint16_t device, std::size_t octets);
std::array<LinkMacs, 2> link_macs(const std::vector<Link>& links);
// Answers a frame that asks for one of the link's addresses; false if it does not.
bool answer_neighbour(Link& link, rte_mempool* pool, std::span<const std::uint8_t> frame);
// Asks for the gateway's MAC address until it is known; false after so many seconds.
bool resolve(Link& link, rte_mempool* pool, double seconds);

}  // namespace sluice::pktgen
