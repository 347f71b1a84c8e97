// SPDX-License-Identifier: Apache-2.0
#include "dataplane/http/server.hpp"

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <optional>
#include <thread>
#include <vector>

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
                if (request.path == "/never") return unanswered_.push_back(std::move(respond));
                if (request.path == "/later") {
                    asio::post(context_, [respond] { respond({200, "text/plain", {}, "later"}); });
                    return;
                }
                respond({200,
                         "text/plain",
                         {{"X-Query", request.query}},
                         request.method + " " + request.path + " " + request.body});
            },
            {},
            [](const Request& head) {
                const bool is_known = head.header("Authorization") != "stranger";
                return is_known ? std::nullopt
                                : std::optional<Response>({401, "text/plain", {}, "who?"});
            });
        REQUIRE(listening);
        server_ = std::move(*listening);
        thread_ = std::thread([this] { context_.run(); });
    }
    ~Fixture() {
        asio::post(context_, [this] {
            unanswered_.clear();
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

    // A client that has sent this much so far.
    [[nodiscard]] std::unique_ptr<tcp::socket> open(const std::string& octets,
                                                    const char* from = "127.0.0.1") const {
        static asio::io_context context;
        auto socket =
            std::make_unique<tcp::socket>(context, tcp::endpoint(tcp::v4(), 0).protocol());
        socket->bind({asio::ip::make_address(from), 0});
        socket->connect({asio::ip::address_v4::loopback(), server_->port()});
        boost::system::error_code error;
        asio::write(*socket, asio::buffer(octets), error);
        return socket;
    }
    [[nodiscard]] unsigned get(const char* path = "/") const {
        Client client(origin(), std::chrono::seconds(2));
        const auto answer = client.send({"GET", path, "", {}, ""});
        return answer ? answer->status : 0;
    }

  private:
    std::vector<Respond> unanswered_;
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

TEST_CASE("HEAD is answered as GET is, without the body, and the connection goes on") {
    const Fixture f;
    const auto answer = f.raw(
        "HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n"
        "GET /y HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    const auto end = answer.find("\r\n\r\n");
    REQUIRE(end != std::string::npos);
    const std::string would_be = "GET /x ";
    CHECK(answer.starts_with("HTTP/1.1 200"));
    CHECK(answer.find("Content-Length: " + std::to_string(would_be.size())) < end);
    CHECK(answer.substr(end + 4).starts_with("HTTP/1.1 200"));
    CHECK(answer.ends_with("GET /y "));
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

TEST_CASE("nobody makes room for another while he is being answered") {
    const Fixture fixture(Limits{.connections = 2});
    const auto first = fixture.open("GET /never HTTP/1.1\r\n\r\n");
    const auto second = fixture.open("GET /never HTTP/1.1\r\n\r\n");
    // The second may not have been read yet: until then it is the one to go.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    for (int i = 0; i < 5; ++i) CHECK(is_status(fixture.raw("GET / HTTP/1.1\r\n\r\n"), 503));
}

TEST_CASE("requests that are not finished do not starve others") {
    const Fixture fixture(Limits{.connections = 20});
    std::vector<std::unique_ptr<tcp::socket>> crowd;
    const auto flood = [&](const std::string& octets) {
        for (int i = 0; i < 50; ++i) crowd.push_back(fixture.open(octets));
    };
    SECTION("without an octet") {
        flood("");
    }
    SECTION("with half a header") {
        flood("POST / HTTP/1.1\r\nHost: a\r\n");
    }
    SECTION("with half a body") {
        flood("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc");
    }
    SECTION("idle after a request") {
        flood("GET / HTTP/1.1\r\n\r\n");
    }
    SECTION("refused, and staying") {
        flood("POST / HTTP/1.1\r\nAuthorization: stranger\r\nContent-Length: 9\r\n\r\n");
    }
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 5; ++i) CHECK(fixture.get() == 200);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
}

TEST_CASE("whoever is not admitted is told so before the body is read") {
    const Fixture fixture;
    const std::string head = "POST / HTTP/1.1\r\nContent-Length: 9\r\nAuthorization: ";
    CHECK(is_status(fixture.raw(head + "stranger\r\n\r\nabc"), 401));
    CHECK(is_status(fixture.raw(head + "stranger\r\nExpect: 100-continue\r\n\r\n"), 401));
    CHECK(is_status(fixture.raw(head + "friend\r\nConnection: close\r\n\r\n123456789"), 200));
}

TEST_CASE("one peer's unfinished requests are bounded, others keep theirs") {
    const Fixture fixture(Limits{.connections = 20, .unfinished_per_peer = 4});
    const auto half = std::string("GET / HTTP/1.1\r\nConnection: close\r\n");
    const auto other = fixture.open(half);
    std::vector<std::unique_ptr<tcp::socket>> crowd;
    for (int i = 0; i < 10; ++i) crowd.push_back(fixture.open(half, "127.0.0.2"));
    const auto is_served = [](tcp::socket& socket) {
        boost::system::error_code error;
        asio::write(socket, asio::buffer(std::string("\r\n")), error);
        std::string answer;
        asio::read(socket, asio::dynamic_buffer(answer), error);
        return is_status(answer, 200);
    };
    CHECK(fixture.get() == 200);  // by now all of them are accepted
    CHECK(is_served(*other));
    CHECK(std::count_if(crowd.begin(), crowd.end(),
                        [&](auto& socket) { return is_served(*socket); }) == 4);
}

TEST_CASE("an address in use is refused with the system's sentence") {
    const Fixture fixture;
    asio::io_context context;
    const auto again =
        Server::listen(context, {"127.0.0.1", fixture.origin().port, true}, {}, {}, {});
    REQUIRE_FALSE(again);
    CHECK(again.error().message.find("in use") != std::string::npos);
}
