// SPDX-License-Identifier: Apache-2.0
// The REST API, free of HTTP's transport: requests in, responses out.
//
// Threads: the event loop's. Ownership: service and tokens outlive it. Whatever comes in,
// the answer is a response: input is checked whole before anything changes.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "controller/api/service.hpp"
#include "controller/api/tokens.hpp"
#include "dataplane/http/server.hpp"

namespace sluice::api {

class Api {
  public:
    Api(Service& service, Tokens tokens);
    ~Api();
    Api(const Api&) = delete;
    Api& operator=(const Api&) = delete;

    // `respond` is called once, maybe later (?wait=, what gateways are asked).
    void handle(http::Request request, http::Respond respond);

    // For http::Server: who shows no token that is known is answered before a body is read.
    [[nodiscard]] std::optional<http::Response> admit(const http::Request& head) const;

    // From the next request on.
    void set_tokens(Tokens tokens);

    // For http::Server: the same problem documents for what never gets here.
    static http::Response refuse(unsigned status, const std::string& detail);
    static http::Limits limits();

  private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace sluice::api
