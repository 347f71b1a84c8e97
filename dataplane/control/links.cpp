// SPDX-License-Identifier: Apache-2.0
#include "dataplane/control/links.hpp"

#include <rte_mbuf.h>
#include <rte_ring.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "dataplane/wire/neighbour.hpp"

namespace sluice::control {
namespace {

using namespace std::chrono_literals;
constexpr auto kPollLinks = 200ms;
// Frames a tick: a fraction of what the ring to the worker holds.
constexpr std::size_t kAnnouncedAtOnce = 64;

// The port's own address to ask with: on the target's prefix, else any of its family.
const IpAddress* own_address(const port::Port& port, const IpAddress& target) {
    const IpAddress* any = nullptr;
    for (const auto& own : port.addresses) {
        if (own.prefix().contains(target)) return &own.address;
        if (own.address.family() == target.family() && any == nullptr) any = &own.address;
    }
    return any;
}

}  // namespace

Links::Links(const port::Ports& ports, neighbour::Neighbours& neighbours,
             reachability::Routes& routes, Injection injection)
    : ports_(ports),
      neighbours_(neighbours),
      routes_(routes),
      injection_(injection),
      up_(ports.all().size(), true) {}

void Links::announce(const IpAddress& address, neighbour::Time now) {
    if (const auto* port = routes_.on_link_uplink(address))
        announcements_.put({port->id, address}, now);
}

void Links::withdraw(const IpAddress& address) {
    announcements_.remove(address);
}

void Links::announce_own(neighbour::Time now) {
    for (const auto& port : ports_.all())
        for (const auto& own : port.addresses) announcements_.put({port.id, own.address}, now);
}

bool Links::tick(neighbour::Time now) {
    const bool changed = now >= next_poll_ && poll_links(now);
    neighbours_.tick(now);
    for (const auto& request : neighbours_.take_requests()) ask(request);
    for (const auto& here : announcements_.take(now, kAnnouncedAtOnce)) say(here);
    return changed;
}

bool Links::poll_links(neighbour::Time now) {
    next_poll_ = now + kPollLinks;
    bool changed = false;
    for (const auto& port : ports_.all()) {
        const bool up = ports_.link(port.id).up;
        if (up == up_[port.id.value - 1]) continue;
        up_[port.id.value - 1] = up;
        changed = true;
        spdlog::warn("port {} ({}): the link is {}", port.id.value, port.name, up ? "up" : "down");
        routes_.link(port.id, up);
        if (!up) continue;
        neighbours_.link_changed(port.id, now);
        announcements_.link_up(port.id, now);
    }
    return changed;
}

void Links::ask(const neighbour::Request& request) {
    const auto& port = ports_[request.key.port];
    const auto& target = request.key.address;
    const auto* own = own_address(port, target);
    if (own == nullptr) return;
    const wire::Neighbour self{*own, port.mac};
    std::array<std::uint8_t, wire::kNeighbourFrame> frame{};
    std::size_t size = 0;
    if (target.is_v4())
        size = request.unicast_to
                   ? wire::write_arp_probe(frame, self, {target, *request.unicast_to})
                   : wire::write_arp_request(frame, self, target);
    else
        size = request.unicast_to
                   ? wire::write_solicitation_probe(frame, self, {target, *request.unicast_to})
                   : wire::write_solicitation(frame, self, target);
    send(port.id, std::span(frame).first(size));
}

void Links::say(const neighbour::Key& here) {
    const wire::Neighbour self{here.address, ports_[here.port].mac};
    std::array<std::uint8_t, wire::kNeighbourFrame> frame{};
    const auto size = here.address.is_v4() ? wire::write_arp_announcement(frame, self)
                                           : wire::write_unsolicited_advertisement(
                                                 frame, self, wire::NeighbourRole::router);
    send(here.port, std::span(frame).first(size));
}

// A frame that finds no buffer or no room is not sent: it is asked or told again.
void Links::send(PortId port, std::span<const std::uint8_t> frame) {
    if (frame.empty()) return;
    // Ethernet's minimum without FCS.
    constexpr std::size_t kLeast = 60;
    auto* buffer = rte_pktmbuf_alloc(injection_.pool);
    if (buffer == nullptr) return;
    const auto size = std::max(frame.size(), kLeast);
    auto* octets = reinterpret_cast<std::uint8_t*>(
        rte_pktmbuf_append(buffer, static_cast<std::uint16_t>(size)));
    std::memset(octets, 0, size);
    std::memcpy(octets, frame.data(), frame.size());
    buffer->port = static_cast<std::uint16_t>(port.value);
    if (rte_ring_enqueue(injection_.ring, buffer) != 0) rte_pktmbuf_free(buffer);
}

}  // namespace sluice::control
