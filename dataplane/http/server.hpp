// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server (RFC 9112) for the API and for telemetry.
//
// Threads: everything, the handler too, runs on the io_context's one thread.
// Ownership: the server owns its connections; destroying it closes them all. An answer
// that comes after that is ignored.
// Cost: a connection holds one request at a time; its memory is bounded by Limits. When a
// connection comes over a bound, one look at all of them.
// Who may send: `admit` sees each request's header before its body is read; whom it answers
// is sent that and let go, so a stranger holds a connection no longer than a header takes.
// Nobody starves others with requests that he does not finish: at the limit a new connection
// takes the place of the oldest unfinished one (first of refused clients, then without a
// whole header, then idle between two requests, then without a whole body). What is being
// answered is never cut off; only when there is nothing else, the new one gets 503. One peer
// (an IPv4 address, an IPv6 /64) cannot take more than its share of unfinished ones either.
// HEAD is handled as GET, and answered without the body (RFC 9110 section 9.3.2).
// What it refuses by itself, through `refuse`: malformed requests (400), a request that
// takes too long to arrive (408), a body over the limit (413), headers over the limit
// (431), an unknown transfer coding (501), too many connections (503). After each of
// these the connection closes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "dataplane/http/message.hpp"
#include "dataplane/wire/result.hpp"

namespace boost::asio {
class io_context;
}

namespace sluice::http {

struct Limits {
    std::size_t header_octets = 16 * 1024;
    std::size_t body_octets = 1024 * 1024;
    std::size_t connections = 512;
    std::size_t unfinished_per_peer = 256;          // of these, with no request under way
    std::chrono::milliseconds header_time{10'000};  // from the first octet, or from accept
    std::chrono::milliseconds body_time{20'000};    // for the whole body
    std::chrono::milliseconds write_time{20'000};   // for the whole response
    std::chrono::milliseconds idle_time{75'000};    // between two requests
};

// Called once per request. `respond` may be called at once or later, from the same
// thread, once; the next request of the connection is read after it.
using Respond = std::function<void(Response)>;
using Handler = std::function<void(Request request, Respond respond)>;
// The response for a request that never reaches the handler.
using Refuse = std::function<Response(unsigned status, std::string detail)>;
// Called with a request's header (the body is empty) before the rest is read. A response is
// the end of it; nothing lets it go on.
using Admit = std::function<std::optional<Response>(const Request& head)>;

// "address:port", "[v6]:port" or "localhost:port". Port 0 asks the system for a free one.
struct ListenAddress {
    std::string address;
    std::uint16_t port = 0;
    bool loopback = false;
};
Result<ListenAddress> parse_listen_address(std::string_view text);

class Server {
  public:
    // Listens at once. Fails with the system's sentence (in use, not permitted, …).
    // `refuse` may be empty: then such responses are plain text; `admit`: all are admitted.
    static Result<std::unique_ptr<Server>> listen(boost::asio::io_context& context,
                                                  const ListenAddress& address, Limits limits,
                                                  Handler handler, Refuse refuse = {},
                                                  Admit admit = {});
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    [[nodiscard]] std::uint16_t port() const;
    [[nodiscard]] std::size_t connections() const;

  private:
    struct Impl;
    explicit Server(std::shared_ptr<Impl> impl);
    std::shared_ptr<Impl> impl_;
};

}  // namespace sluice::http
