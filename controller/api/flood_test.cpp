// SPDX-License-Identifier: Apache-2.0
// Many clients that never finish their requests, over real sockets.
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <thread>

#include "controller/api/fixture.hpp"
#include "dataplane/http/client.hpp"

using namespace sluice::api;
using namespace std::chrono_literals;
namespace http = sluice::http;
namespace asio = boost::asio;
using asio::ip::tcp;

TEST_CASE("600 requests that never end do not keep a client with a token waiting") {
    Fixture f("[[token]]\ntoken = \"red-token\"\nproject = \"red\"\nrole = \"member\"\n");
    auto listening = http::Server::listen(
        f.context, *http::parse_listen_address("127.0.0.1:0"), Api::limits(),
        [&](http::Request request, http::Respond respond) {
            f.api->handle(std::move(request), std::move(respond));
        },
        Api::refuse, [&](const http::Request& head) { return f.api->admit(head); });
    REQUIRE(listening);
    const auto port = (*listening)->port();

    std::string head = "POST /v1/vpcs HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n";
    SECTION("whole headers without a token") {
        head += "\r\n{";
    }
    SECTION("whole headers with a token that nobody has") {
        head += "Authorization: Bearer something\r\n\r\n{";
    }
    SECTION("headers that do not end") {}
    SECTION("bodies that do not end, with a token") {
        head += "Authorization: Bearer red-token\r\n\r\n{";
    }
    std::thread server([&] { f.context.run(); });
    asio::io_context context;
    std::vector<tcp::socket> crowd;
    for (int i = 0; i < 600; ++i) {
        auto& socket = crowd.emplace_back(context);
        boost::system::error_code error;
        socket.connect({asio::ip::address_v4::loopback(), port}, error);
        asio::write(socket, asio::buffer(head), error);
    }
    unsigned status = 0;  // in half the time that the crowd has for its headers, or none
    if (auto reply =
            http::Client({"127.0.0.1", port, ""}, 5s)
                .send({"GET", "/v1/vpcs", "", {{"Authorization", "Bearer red-token"}}, ""}))
        status = reply->status;
    f.context.stop();
    server.join();
    CHECK(status == 200);
}

TEST_CASE("a client without a token is refused before its body is read, as a problem document") {
    Fixture f("[[token]]\ntoken = \"red-token\"\nproject = \"red\"\nrole = \"member\"\n");
    const auto refused = f.api->admit({"POST", "/v1/vpcs", "", {}, ""});
    REQUIRE(refused);
    CHECK(refused->status == 401);
    CHECK(refused->header("WWW-Authenticate") == "Bearer");
    CHECK_FALSE(refused->header("X-Request-Id").empty());
    CHECK_FALSE(
        f.api->admit({"POST", "/v1/vpcs", "", {{"Authorization", "Bearer red-token"}}, ""}));
    CHECK_FALSE(Fixture().api->admit({"POST", "/v1/vpcs", "", {}, ""}));  // none are asked for
}

TEST_CASE("without tokens a browser's requests are refused, whatever page sent them") {
    const Fixture f;
    const auto status = [&](std::vector<http::Header> headers) {
        const auto refused = f.api->admit({"POST", "/v1/vpcs", "", std::move(headers), ""});
        return refused ? refused->status : 200;
    };
    CHECK(status({{"Host", "evil.example:8080"}}) == 403);
    CHECK(status({{"Host", "127.0.0.1:8080"}, {"Origin", "http://evil.example"}}) == 403);
    CHECK(status({{"Host", "localhost.evil.example"}}) == 403);
    CHECK(status({{"Host", "127.0.0.1.evil.example"}}) == 403);
    for (const char* host : {"127.0.0.1:8080", "localhost", "localhost:8080", "[::1]:8080"})
        CHECK(status({{"Host", host}}) == 200);
}
