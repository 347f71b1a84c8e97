// SPDX-License-Identifier: Apache-2.0
// DPDK's environment: memory, cores and drivers, brought up from the configuration.
//
// One per process, before any port. Ownership: the destructor stops DPDK. The calling thread
// becomes the control thread; it keeps off the workers' cores where there are others.
// Nothing is left behind in the file system (--in-memory), no PCI device is touched that the
// configuration does not name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/config/config.hpp"
#include "dataplane/wire/result.hpp"

namespace sluice::port {

// Octets of packet data that one buffer holds, for these ports. Grows with the MTU, since
// not every device spreads a frame over several buffers.
std::uint16_t buffer_octets(const config::Config& config);

// Megabytes that the gateway's buffers and queues take.
std::uint32_t memory_megabytes(const config::Config& config);

// Free hugepage memory of the machine.
std::uint64_t free_hugepage_megabytes();

// Which of the configuration's virtual devices DPDK has no driver for, by index. Starts DPDK
// with as little as it takes and opens no device; for a process that does not start it again.
Result<std::vector<std::size_t>> unknown_devices(const config::Config& config);

class Eal {
  public:
    static Result<std::unique_ptr<Eal>> start(const config::Config& config);
    ~Eal();
    Eal(const Eal&) = delete;
    Eal& operator=(const Eal&) = delete;

    // Runs `work` on the core of worker i, until it returns.
    void launch(unsigned worker, std::function<void()> work);
    // Waits until every worker's function has returned.
    void join();
    [[nodiscard]] bool uses_hugepages() const { return hugepages_; }

  private:
    Eal() = default;
    bool hugepages_ = false;
    std::vector<std::function<void()>> work_;
};

// The first complaint of DPDK or of a driver since they were forgotten: the cause behind an
// error code.
std::string first_complaint();
void forget_complaints();

}  // namespace sluice::port
