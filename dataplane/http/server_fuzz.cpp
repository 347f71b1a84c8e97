// SPDX-License-Identifier: Apache-2.0
// Any octets on a connection, in any portions: whole requests reach the handler within the
// limits, everything is answered by well-formed responses, and the connection ends.
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <cstdlib>

#include "dataplane/http/server.hpp"

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace sluice::http;

constexpr Limits kLimits{.header_octets = 512, .body_octets = 1024};

void require(bool holds) {
    if (!holds) std::abort();
}

void handle(const Request& request, const Respond& respond) {
    require(!request.method.empty() && request.method != "HEAD");
    require(request.body.size() <= kLimits.body_octets);
    for (const auto& header : request.headers) require(!header.name.empty());
    (void)parse_query(request.query);
    respond({200, "text/plain", {}, request.path});
}

struct World {
    asio::io_context loop;
    std::unique_ptr<Server> server;
    World() {
        auto listening =
            Server::listen(loop, *parse_listen_address("127.0.0.1:0"), kLimits, handle);
        require(bool(listening));
        server = std::move(*listening);
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static World world;
    tcp::socket client(world.loop);
    client.connect({asio::ip::address_v4::loopback(), world.server->port()});
    std::string answer;
    bool is_over = false;
    asio::async_read(client, asio::dynamic_buffer(answer),
                     [&](const boost::system::error_code&, std::size_t) { is_over = true; });
    // The first octet says how long the portions are; the server's turns come in between.
    const std::size_t portion = size == 0 || data[0] == 0 ? size : data[0];
    for (std::size_t at = size == 0 ? 0 : 1; at < size; at += portion) {
        boost::system::error_code error;
        asio::write(client, asio::buffer(data + at, std::min(portion, size - at)), error);
        world.loop.restart();
        world.loop.poll();
        if (error) break;
    }
    boost::system::error_code ignored;
    client.shutdown(tcp::socket::shutdown_send, ignored);
    while (!is_over) {
        world.loop.restart();
        require(world.loop.run_one_for(std::chrono::seconds(5)) != 0);
    }
    require(answer.empty() || answer.starts_with("HTTP/1."));
    return 0;
}
