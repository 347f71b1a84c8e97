// SPDX-License-Identifier: Apache-2.0
#include "dataplane/telemetry/metrics.hpp"

namespace sluice::telemetry {
namespace {

constexpr std::array<std::string_view, session::kPortSpaces> kProtocols = {"tcp", "udp", "icmp"};

}  // namespace

void write_nat(OpenMetrics& out, const Facts& facts) {
    std::vector<session::PortTable::Use> uses;
    facts.tables.sessions.ports.visit([&](const auto& use) { uses.push_back(use); });
    const auto each = [&](auto value) {
        for (const auto& use : uses)
            for (std::size_t space = 0; space < kProtocols.size(); ++space)
                out.sample({{"nat_gateway", std::to_string(use.gateway.value)},
                            {"address", to_string(IpAddress::v4(use.address))},
                            {"protocol", kProtocols[space]}},
                           std::uint64_t{value(use)[space]});
    };
    out.gauge("sluice_nat_ports_used", "Ports of NAT gateways' addresses that connections use.");
    each([](const session::PortTable::Use& use) { return use.live; });
    out.gauge("sluice_nat_blocks_used", "Blocks of 64 ports that endpoints have, of 1,008.");
    each([](const session::PortTable::Use& use) { return use.blocks; });
    const auto& ports = facts.tables.sessions.ports;
    out.gauge("sluice_nat_blocks_free", "Blocks of ports that the gateway has left.");
    out.sample({}, std::uint64_t{ports.free()});
    out.gauge("sluice_nat_blocks_capacity", "Blocks of ports that endpoints may have at once.");
    out.sample({}, std::uint64_t{ports.capacity()});
    out.counter("sluice_nat_log_lost", "Blocks that came or went without a line in nat.log.");
    out.sample({}, facts.nat_log_lost);
}

}  // namespace sluice::telemetry
