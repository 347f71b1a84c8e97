// SPDX-License-Identifier: Apache-2.0
#include "dataplane/telemetry/counters.hpp"

namespace sluice::telemetry {

ZoneSum& ZoneSum::operator-=(const ZoneSum& base) {
    for (std::size_t i = 0; i < drops.size(); ++i) drops[i] -= base.drops[i];
    connections_created -= base.connections_created;
    connections_ended -= base.connections_ended;
    connections_evicted -= base.connections_evicted;
    return *this;
}

void Counters::opened(policy::ZoneSlot slot) {
    bases_[slot] = sum(slot);
}

ZoneSum Counters::zone(policy::ZoneSlot slot) const {
    auto result = sum(slot);
    if (const auto at = bases_.find(slot); at != bases_.end()) result -= at->second;
    return result;
}

ZoneSum Counters::sum(policy::ZoneSlot slot) const {
    ZoneSum result;
    for (const auto* worker : workers_) {
        if (slot.value >= worker->zones) continue;
        const auto& zone = worker->zone[slot.value];
        for (std::size_t i = 0; i < kDropReasons; ++i) result.drops[i] += zone.drops[i].read();
        result.connections_created += zone.connections_created.read();
        result.connections_ended += zone.connections_ended.read();
        result.connections_evicted += zone.connections_evicted.read();
    }
    return result;
}

PortSum Counters::port(PortId port) const {
    PortSum result;
    for (const auto* worker : workers_) {
        if (port.value > worker->ports) continue;
        const auto& counters = worker->port[port.value];
        result.received += counters.received.read();
        result.received_octets += counters.received_octets.read();
        result.sent += counters.sent.read();
        result.sent_octets += counters.sent_octets.read();
    }
    return result;
}

double Counters::busy_ratio(unsigned worker) {
    const auto& counters = *workers_[worker];
    const Cycles now{counters.busy_cycles.read(), counters.idle_cycles.read()};
    auto& last = last_cycles_[worker];
    const auto busy = now.busy - last.busy, idle = now.idle - last.idle;
    last = now;
    return busy + idle == 0 ? 0.0 : static_cast<double>(busy) / static_cast<double>(busy + idle);
}

}  // namespace sluice::telemetry
