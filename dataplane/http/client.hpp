// SPDX-License-Identifier: Apache-2.0
// A blocking HTTP/1.1 client for command lines and tests.
//
// Threads: one object, one thread. Keeps its connection open between requests and opens
// a new one where the server closed it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "dataplane/http/message.hpp"
#include "dataplane/wire/result.hpp"

namespace sluice::http {

// Of "http://host[:port][/prefix]"; port 80 where none is given.
struct Origin {
    std::string host;
    std::uint16_t port = 80;
    std::string prefix;  // without a trailing slash; goes before every request's path
};
Result<Origin> parse_origin(std::string_view url);

class Client {
  public:
    // Connects with the first request.
    explicit Client(Origin origin, std::chrono::milliseconds timeout = std::chrono::seconds(30),
                    std::size_t response_limit = std::size_t{256} * 1024 * 1024);
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    // Fails (code unavailable) when no complete response came within the timeout; any
    // status is a success. A request that may already have been acted on is never sent
    // twice: only one that met a closed idle connection before any octet came back is
    // repeated, and only if its method is safe (RFC 9110 section 9.2.1).
    Result<Response> send(const Request& request);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::http
