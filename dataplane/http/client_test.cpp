// SPDX-License-Identifier: Apache-2.0
#include "dataplane/http/client.hpp"

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <thread>

using namespace sluice::http;
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

// A server whose every connection takes one request, answers it, and hangs up without a word when
// the next one comes.
class HangsUp {
  public:
    HangsUp() : acceptor_(context_, {asio::ip::address_v4::loopback(), 0}) {
        thread_ = std::thread([this] { serve(); });
    }
    ~HangsUp() {
        stopping_ = true;
        tcp::socket last(context_);
        boost::system::error_code ignored;
        last.connect(acceptor_.local_endpoint(), ignored);
        thread_.join();
    }
    HangsUp(const HangsUp&) = delete;
    HangsUp& operator=(const HangsUp&) = delete;

    [[nodiscard]] Origin origin() const {
        return {"127.0.0.1", acceptor_.local_endpoint().port(), {}};
    }
    std::atomic<unsigned> connections{0};

  private:
    void serve() {
        while (true) {
            tcp::socket peer(context_);
            boost::system::error_code error;
            acceptor_.accept(peer, error);
            if (stopping_ || error) return;
            ++connections;
            asio::streambuf request;
            asio::read_until(peer, request, "\r\n\r\n", error);
            if (error) continue;
            asio::write(peer,
                        asio::buffer(std::string("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")),
                        error);
            asio::read_until(peer, request, "\r\n\r\n", error);
        }
    }
    asio::io_context context_;
    tcp::acceptor acceptor_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

Request request(const std::string& method) {
    Request result;
    result.method = method;
    return result;
}

}  // namespace

TEST_CASE("a request that met a closed connection is repeated if it is safe, and only then") {
    for (const char* method : {"GET", "HEAD"}) {
        HangsUp server;
        Client client(server.origin(), std::chrono::seconds(5));
        REQUIRE(client.send(request("GET")));
        CHECK(server.connections == 1);
        INFO(method);
        REQUIRE(client.send(request(method)));
        CHECK(server.connections == 2);
    }
    for (const char* method : {"POST", "PATCH", "DELETE", "PUT"}) {
        HangsUp server;
        Client client(server.origin(), std::chrono::seconds(5));
        REQUIRE(client.send(request("GET")));
        INFO(method);
        CHECK_FALSE(client.send(request(method)));
        CHECK(server.connections == 1);
    }
}
