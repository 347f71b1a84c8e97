// SPDX-License-Identifier: Apache-2.0
// The receive and transmit queues that one worker uses: what the ports give to a worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "dataplane/wire/packet.hpp"
#include "dataplane/wire/types.hpp"

struct rte_mempool;

namespace sluice::port {

// A transmit queue that several workers share; held only around one rte_eth_tx_burst.
struct alignas(64) TxLock {
    std::atomic<bool> held{false};
};

struct ReceiveQueue {
    std::uint16_t device = 0;  // DPDK's port number
    std::uint16_t queue = 0;
    PortId port;
    Side side = Side::underlay;
};

struct TransmitQueue {
    std::uint16_t device = 0;
    std::uint16_t queue = 0;
    TxLock* lock = nullptr;  // nullptr: this worker's alone
};

// What a worker needs: the queues it polls, and where it sends for each port.
struct WorkerPorts {
    std::vector<ReceiveQueue> receive;    // may be empty
    std::vector<TransmitQueue> transmit;  // by PortId.value - 1
    rte_mempool* pool = nullptr;          // of the worker's NUMA node
};

}  // namespace sluice::port
