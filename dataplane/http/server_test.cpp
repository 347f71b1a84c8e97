// SPDX-License-Identifier: Apache-2.0
#include "dataplane/http/server.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <thread>

#include "dataplane/http/client.hpp"

using namespace sluice::http;
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

// An echo server on a thread of its own.
class Fixture {
  public:
    explicit Fixture(Limits limits = {}) {
        auto listening = Server::listen(
            context_, *parse_listen_address("127.0.0.1:0"), limits,
            [this](Request request, Respond respond) {
                if (request.path == "/later") {
                    asio::post(context_, [respond] { respond({200, "text/plain", {}, "later"}); });
                    return;
                }
                respond({200,
                         "text/plain",
                         {{"X-Query", request.query}},
                         request.method + " " + request.path + " " + request.body});
            });
        REQUIRE(listening);
        server_ = std::move(*listening);
        thread_ = std::thread([this] { context_.run(); });
    }
    ~Fixture() {
        asio::post(context_, [this] {
            server_.reset();
            context_.stop();
        });
        thread_.join();
    }
    Fixture(const Fixture&) = delete;
    Fixture& operator=(const Fixture&) = delete;

    [[nodiscard]] Origin origin() const { return {"127.0.0.1", server_->port(), ""}; }
    // Sends octets as they are and reads until the server closes.
    [[nodiscard]] std::string raw(const std::string& octets) const {
        asio::io_context context;
        tcp::socket socket(context);
        socket.connect({asio::ip::address_v4::loopback(), server_->port()});
        boost::system::error_code error;
        asio::write(socket, asio::buffer(octets), error);
        std::string answer;
        asio::read(socket, asio::dynamic_buffer(answer), error);
        return answer;
    }

  private:
    asio::io_context context_;
    std::unique_ptr<Server> server_;
    std::thread thread_;
};

bool is_status(const std::string& answer, int status) {
    return answer.starts_with("HTTP/1.1 " + std::to_string(status) + " ");
}

}  // namespace

TEST_CASE("requests and responses pass whole, over one connection") {
    const Fixture fixture;
    Client client(fixture.origin());
    for (int i = 0; i < 3; ++i) {
        const auto answer = client.send({"POST", "/a%20b", "x=1", {}, "body"});
        REQUIRE(answer);
        CHECK(answer->status == 200);
        CHECK(answer->body == "POST /a%20b body");
        CHECK(answer->header("x-query") == "x=1");
    }
}

TEST_CASE("a handler may answer later") {
    const Fixture fixture;
    Client client(fixture.origin());
    const auto answer = client.send({"GET", "/later", "", {}, ""});
    REQUIRE(answer);
    CHECK(answer->body == "later");
}

TEST_CASE("a body over the limit is 413, announced or not, and the client can read it") {
    const Fixture fixture(Limits{.body_octets = 1000});
    const std::string large(100'000, 'x');
    Client client(fixture.origin());
    const auto answer = client.send({"POST", "/", "", {}, large});
    REQUIRE(answer);
    CHECK(answer->status == 413);
    CHECK(is_status(fixture.raw("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n"
                                "Expect: 100-continue\r\n\r\n"),
                    413));
    CHECK(is_status(fixture.raw("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                                "7d0\r\n" +
                                std::string(2000, 'x') + "\r\n0\r\n\r\n"),
                    413));
    const auto after = client.send({"GET", "/", "", {}, ""});
    REQUIRE(after);
    CHECK(after->status == 200);
}

TEST_CASE("a header over the limit is 431") {
    const Fixture fixture(Limits{.header_octets = 1000});
    CHECK(
        is_status(fixture.raw("GET / HTTP/1.1\r\nX: " + std::string(5000, 'x') + "\r\n\r\n"), 431));
}

TEST_CASE("malformed requests are 400") {
    const Fixture fixture;
    CHECK(is_status(fixture.raw("hello\r\n\r\n"), 400));
    CHECK(is_status(fixture.raw("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400));
}

TEST_CASE("a client that sends too slowly is told so and let go") {
    const Fixture fixture(Limits{.header_time = std::chrono::milliseconds(50),
                                 .body_time = std::chrono::milliseconds(50)});
    CHECK(is_status(fixture.raw("GET / HT"), 408));
    CHECK(is_status(fixture.raw("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc"), 408));
    Client client(fixture.origin());
    CHECK(client.send({"GET", "/", "", {}, ""})->status == 200);
}

TEST_CASE("connections over the limit are refused, and free again when others close") {
    const Fixture fixture(Limits{.connections = 1});
    {
        Client first(fixture.origin());
        REQUIRE(first.send({"GET", "/", "", {}, ""})->status == 200);
        CHECK(is_status(fixture.raw("GET / HTTP/1.1\r\n\r\n"), 503));
    }
    Client later(fixture.origin());
    std::optional<unsigned> status;
    for (int i = 0; i < 50 && status != 200; ++i) {
        if (const auto answer = later.send({"GET", "/", "", {}, ""})) status = answer->status;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    CHECK(status == 200);
}

TEST_CASE("an address in use is refused with the system's sentence") {
    const Fixture fixture;
    asio::io_context context;
    const auto again =
        Server::listen(context, {"127.0.0.1", fixture.origin().port, true}, {}, {}, {});
    REQUIRE_FALSE(again);
    CHECK(again.error().message.find("in use") != std::string::npos);
}
