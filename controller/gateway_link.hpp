// SPDX-License-Identifier: Apache-2.0
// Joins the service, which knows what gateways should hold, and the southbound, which
// speaks OpenFlow to them. Neither knows the other.
//
// Threads: the event loop's. Ownership: the service outlives it.
#pragma once

#include <string>

#include "controller/api/service.hpp"
#include "controller/southbound/southbound.hpp"

namespace sluice {

class GatewayLink final : public api::GatewayLink, private southbound::Listener {
  public:
    GatewayLink(boost::asio::io_context& context, api::Service& service,
                southbound::Settings settings);

    Result<void> start() { return southbound_.start(); }

    void publish(const std::string& gateway, std::uint64_t revision,
                 const openflow::Changes& changes) override;
    std::optional<api::GatewayReport> report(const std::string& gateway) override;
    void query(const std::string& gateway, const std::string& kind, std::string request,
               std::function<void(Result<std::string>)> done) override;

  private:
    void on_confirmed(const std::string& gateway, std::uint64_t revision) override;
    void on_error(const std::string& gateway, std::uint64_t revision,
                  const std::string& sentence) override;
    void on_withheld(const southbound::GatewayInfo& gateway) override;
    void on_gateway(const southbound::GatewayInfo& gateway) override;

    api::Service& service_;
    southbound::Southbound southbound_;
};

}  // namespace sluice
