// SPDX-License-Identifier: Apache-2.0
// The gateway's ports: DPDK devices brought up from the configuration with whatever the
// device offers, and nothing it does not.
//
// Ownership: `Ports` owns the devices, their queues and the mempools; it outlives the
// workers. Threads: everything here is the control thread's, except that a worker receives
// and sends on the queues it was given.
// Queues: port p × receive queue q is polled by exactly one worker. Every worker may send
// on every port: `tx_queue` names the queue; where a device has fewer transmit queues than
// there are workers several share one, and `tx_shared` says that it needs the lock.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataplane/config/config.hpp"
#include "dataplane/port/queues.hpp"
#include "dataplane/wire/result.hpp"
#include "dataplane/wire/types.hpp"

namespace sluice::port {

struct Offloads {
    bool rx_ipv4_checksum = false;  // the device marks good and bad outer IPv4 checksums
    bool tx_ipv4_checksum = false;
    bool tx_multi_segment = false;  // else the sender must linearise
    bool rx_scatter = false;
    bool rss = false;
};

struct Port {
    PortId id;  // from 1, in the order of the configuration
    std::uint16_t device = 0;
    Side role = Side::underlay;
    std::string name;  // the device's, without arguments
    std::string driver;
    MacAddress mac;
    std::uint16_t mtu = 1500;
    std::uint16_t rx_queues = 1;
    std::uint16_t tx_queues = 1;
    Offloads offloads;
    std::vector<config::InterfaceAddress> addresses;
    std::vector<IpAddress> next_hops;
};

struct Link {
    bool up = false;
    std::uint32_t speed_mbps = 0;
};

struct Counters {
    std::uint64_t rx_packets = 0, tx_packets = 0, rx_bytes = 0, tx_bytes = 0;
    std::uint64_t rx_missed = 0, rx_errors = 0, rx_no_buffer = 0, tx_errors = 0;
};

class Ports {
  public:
    // Probes, configures and starts every port of the configuration for `config.workers`.
    // The EAL must be up (eal.hpp). The error's path is the configuration's key.
    static Result<std::unique_ptr<Ports>> open(const config::Config& config);
    ~Ports();
    Ports(const Ports&) = delete;
    Ports& operator=(const Ports&) = delete;

    [[nodiscard]] std::span<const Port> all() const { return ports_; }
    [[nodiscard]] const Port& operator[](PortId id) const { return ports_[id.value - 1]; }
    [[nodiscard]] WorkerPorts for_worker(unsigned worker) const;
    [[nodiscard]] Link link(PortId id) const;
    [[nodiscard]] Counters counters(PortId id) const;

  private:
    Ports() = default;
    Result<void> start(const config::Config& config, std::size_t index);
    Result<void> create_pools(const config::Config& config);

    std::vector<Port> ports_;
    std::vector<rte_mempool*> pools_;                  // one per NUMA node in use
    std::vector<rte_mempool*> worker_pool_;            // by worker
    std::vector<std::unique_ptr<TxLock[]>> tx_locks_;  // by port, then queue
    unsigned workers_ = 0;
};

}  // namespace sluice::port
