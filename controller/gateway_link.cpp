// SPDX-License-Identifier: Apache-2.0
#include "controller/gateway_link.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>

namespace sluice {
namespace {

constexpr std::array<std::pair<std::string_view, openflow::Query>, 5> kQueries{
    {{"explain", openflow::Query::explain},
     {"flows", openflow::Query::flows},
     {"drops", openflow::Query::drops},
     {"limits", openflow::Query::limits},
     {"gateway", openflow::Query::gateway}}};

api::GatewayReport to_report(const southbound::GatewayInfo& gateway) {
    return {.name = gateway.name,
            .address = gateway.address,
            .state = std::string(southbound::to_string(gateway.state)),
            .reason = gateway.reason,
            .generation = gateway.generation,
            .sessions = gateway.sessions,
            .capacity = gateway.capacity,
            .foreign_changes = gateway.foreign_changes,
            .entries_put = gateway.entries_put,
            .entries_removed = gateway.entries_removed,
            .withheld = gateway.withheld.size(),
            .facts = gateway.facts,
            .last_seen = std::chrono::duration_cast<std::chrono::milliseconds>(
                             gateway.last_seen.time_since_epoch())
                             .count()};
}

}  // namespace

GatewayLink::GatewayLink(boost::asio::io_context& context, api::Service& service,
                         southbound::Settings settings)
    : service_(service),
      southbound_(
          context, std::move(settings),
          [this](const std::string& gateway) -> const compiler::DesiredState* {
              return service_.compiler().gateway(gateway);
          },
          *this, [](const std::string& sentence) { spdlog::info("{}", sentence); }) {}

void GatewayLink::publish(const std::string& gateway, std::uint64_t revision,
                          const openflow::Changes& changes) {
    southbound_.publish(gateway, revision, changes);
}

std::optional<api::GatewayReport> GatewayLink::report(const std::string& name) {
    const auto* gateway = southbound_.gateway(name);
    if (gateway == nullptr) return std::nullopt;
    return to_report(*gateway);
}

void GatewayLink::query(const std::string& gateway, const std::string& kind, std::string request,
                        std::function<void(Result<std::string>)> done) {
    for (const auto& [name, query] : kQueries)
        if (name == kind)
            return southbound_.query(gateway, query, std::move(request), std::move(done));
    done(Error{Error::Code::unsupported, "no gateway can be asked for " + kind, {}});
}

void GatewayLink::on_confirmed(const std::string& gateway, std::uint64_t revision) {
    service_.on_confirmed(gateway, revision);
}
void GatewayLink::on_error(const std::string& gateway, std::uint64_t revision,
                           const std::string& sentence) {
    service_.on_error(gateway, revision, sentence);
}
void GatewayLink::on_withheld(const southbound::GatewayInfo& gateway) {
    service_.on_withheld(gateway.name, gateway.withheld);
}
void GatewayLink::on_gateway(const southbound::GatewayInfo& gateway) {
    service_.on_gateway(to_report(gateway));
}

}  // namespace sluice
