// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/rig.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

namespace sluice::pktgen {
namespace {

constexpr std::uint32_t kReceiveBuffers = 16'384;
// Beside those the engines' own: of the loops' one, and of the profile's.
constexpr std::uint32_t kAllBuffers = 3 * kReceiveBuffers;

}  // namespace

config::Config device_config(const Profile& profile, unsigned core, Devices devices) {
    config::Config config;
    config.name = "sluice-pktgen";
    config.workers = {core};
    config.memory.packet_buffers = kReceiveBuffers;
    const auto add = [&](const Port& port, std::string device) {
        config::Port one;
        one.role = port.role;
        one.device = std::move(device);
        one.mac = port.mac;
        one.mtu = port.mtu;
        one.line = port.line;
        config.ports.push_back(std::move(one));
    };
    if (devices == Devices::profile_and_loops)
        for (const auto& port : profile.ports) add(port, port.device);
    for (std::size_t i = 0; i < profile.ports.size(); ++i)
        add(profile.ports[i], fmt::format("net_ring_loop{}", i));
    return config;
}

Result<std::unique_ptr<Rig>> Rig::open(const Profile& profile, unsigned core, Devices devices) {
    auto rig = std::unique_ptr<Rig>(new Rig(profile));
    auto config = device_config(profile, core, devices);
    if (devices == Devices::profile_and_loops) rig->first_loop_ = profile.ports.size();
    auto with_all = config;
    with_all.memory.packet_buffers = kAllBuffers;
    auto eal = port::Eal::start(with_all);
    if (!eal) return eal.error();
    rig->eal_ = std::move(*eal);
    auto ports = port::Ports::open(config);
    if (!ports) return ports.error();
    rig->ports_ = std::move(*ports);
    return rig;
}

Result<std::vector<Link>> Rig::links(double seconds) {
    using Clock = std::chrono::steady_clock;
    std::vector<Link> result;
    auto* pool = ports_->for_worker(0).pool;
    for (std::size_t i = 0; i < first_loop_; ++i) {
        const auto& port = ports_->all()[i];
        const auto end = Clock::now() + std::chrono::duration<double>(seconds);
        while (!ports_->link(port.id).up && Clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const auto path = fmt::format("port[{}].device", i);
        if (!ports_->link(port.id).up)
            return Error{Error::Code::unavailable,
                         fmt::format("no link after {} s: does the other end run?", seconds), path};
        Link link{port.device, Responder(profile_, profile_.ports[i], port.mac)};
        if (!resolve(link, pool, seconds))
            return Error{Error::Code::unavailable,
                         fmt::format("nobody answers for {} within {} s; is it the gateway's "
                                     "address on this link? (`gateway_mac` saves the question)",
                                     to_string(profile_.ports[i].gateway), seconds),
                         fmt::format("port[{}].gateway", i)};
        result.push_back(std::move(link));
    }
    return result;
}

std::vector<Link> Rig::loops() const {
    std::vector<Link> result;
    for (std::size_t i = first_loop_; i < ports_->all().size(); ++i) {
        // Nobody is asked on a loop.
        Port played = profile_.ports[i - first_loop_];
        const MacAddress own = ports_->all()[i].mac;
        if (played.gateway_mac.is_zero()) played.gateway_mac = own;
        result.push_back({ports_->all()[i].device, Responder(profile_, played, own)});
    }
    return result;
}

}  // namespace sluice::pktgen
