// SPDX-License-Identifier: Apache-2.0
#include "dataplane/port/device_string.hpp"

#include <fmt/format.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

namespace sluice::port {
namespace {

bool has_key(std::string_view device, std::string_view key) {
    return device.find(fmt::format(",{}=", key)) != std::string_view::npos;
}

// AF_PACKET: a queue for each worker (the kernel spreads flows over them: PACKET_FANOUT_HASH),
// frames that hold the MTU, and a ring that outlasts a worker descheduled for milliseconds.
// The driver finds frame i at i × framesz, so frames must fill their blocks without a rest,
// and the kernel wants blocks of whole pages.
std::string af_packet(const config::Port& port, std::size_t workers) {
    constexpr std::size_t kPage = 4096;
    constexpr std::size_t kFrames = 4096;
    std::string result;
    if (workers > 1 && !has_key(port.device, "qpairs"))
        result += fmt::format(",qpairs={}", workers);
    if (has_key(port.device, "framesz") || has_key(port.device, "blocksz") ||
        has_key(port.device, "framecnt"))
        return result;
    // tpacket2 header and address, Ethernet with a VLAN tag.
    const std::size_t needed = port.mtu + 22U + 80U;
    const std::size_t frame = std::max<std::size_t>(2048, (needed + 1023) / 1024 * 1024);
    const std::size_t block = std::lcm(frame, kPage);
    const std::size_t per_block = block / frame;
    result += fmt::format(",blocksz={},framesz={},framecnt={}", block, frame,
                          kFrames / per_block * per_block);
    return result;
}

// Netdevice(7): through any socket of the calling process's network namespace.
bool mtu_request(const std::string& interface, unsigned long what, ifreq& request) {
    if (interface.empty() || interface.size() >= sizeof(request.ifr_name)) return false;
    interface.copy(request.ifr_name, interface.size());
    const int handle = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (handle < 0) return false;
    const bool done = ioctl(handle, what, &request) == 0;
    close(handle);
    return done;
}

}  // namespace

std::string with_defaults(const config::Port& port, std::size_t workers) {
    if (port.device.starts_with("net_af_packet") || port.device.starts_with("eth_af_packet"))
        return port.device + af_packet(port, workers);
    return port.device;
}

std::optional<unsigned> interface_mtu(const std::string& interface) {
    ifreq request{};
    if (!mtu_request(interface, SIOCGIFMTU, request)) return std::nullopt;
    return static_cast<unsigned>(request.ifr_mtu);
}

bool set_interface_mtu(const std::string& interface, unsigned mtu) {
    ifreq request{};
    request.ifr_mtu = static_cast<int>(mtu);
    return mtu_request(interface, SIOCSIFMTU, request);
}

}  // namespace sluice::port
