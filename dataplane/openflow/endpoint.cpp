// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/endpoint.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <charconv>
#include <system_error>

namespace sluice::openflow {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::stream_protocol;

Error bad(std::string_view text, std::string message) {
    return {Error::Code::invalid, std::move(message), std::string(text)};
}

Result<Endpoint> parse_unix(std::string_view text, std::string_view path) {
    constexpr std::size_t kLongestPath = sizeof(sockaddr_un{}.sun_path) - 1;
    if (path.empty() || path.size() > kLongestPath)
        return bad(text,
                   "a unix socket's path has 1 to " + std::to_string(kLongestPath) + " characters");
    return Endpoint{stream_protocol::endpoint(std::string(path)), std::string(path)};
}

Result<Endpoint> parse_tcp(std::string_view text, std::string_view rest) {
    const auto colon = rest.rfind(':');
    if (colon == std::string_view::npos) return bad(text, "expected tcp:ADDRESS:PORT");
    std::string_view host = rest.substr(0, colon);
    const std::string_view digits = rest.substr(colon + 1);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']')
        host = host.substr(1, host.size() - 2);
    std::uint16_t port = 0;
    const auto [end, status] = std::from_chars(digits.begin(), digits.end(), port);
    if (status != std::errc{} || end != digits.end())
        return bad(text, "the port is a number up to 65535");
    boost::system::error_code error;
    const auto address = asio::ip::make_address(std::string(host), error);
    if (error) return bad(text, "the address is an IPv4 or IPv6 address");
    if (!address.is_loopback())
        return bad(text, "plain tcp: is for the loopback; elsewhere use unix:");
    return Endpoint{tcp::endpoint(address, port), {}};
}

// Removes a socket file that nobody listens on.
Result<void> clear_path(asio::io_context& loop, std::string_view text, const Endpoint& at) {
    struct stat status;
    if (::lstat(at.unix_path.c_str(), &status) != 0) return {};
    if (!S_ISSOCK(status.st_mode)) return bad(text, "the path exists and is no socket");
    StreamSocket probe(loop);
    boost::system::error_code error;
    probe.connect(at.address, error);
    if (!error)
        return Error{Error::Code::conflict, "another process listens on this socket",
                     std::string(text)};
    ::unlink(at.unix_path.c_str());
    return {};
}

class Acceptor : public Listening, public std::enable_shared_from_this<Acceptor> {
  public:
    using Socket = asio::basic_socket_acceptor<asio::generic::stream_protocol>;

    Acceptor(asio::io_context& loop, std::string path, std::function<void(StreamSocket)> accepted)
        : socket_(loop), pause_(loop), path_(std::move(path)), accepted_(std::move(accepted)) {}

    boost::system::error_code open(const StreamEndpoint& at) {
        boost::system::error_code error;
        socket_.open(at.protocol(), error);
        if (!error && path_.empty()) socket_.set_option(Socket::reuse_address(true), error);
        if (!error) socket_.bind(at, error);
        if (!error && !path_.empty() && ::chmod(path_.c_str(), S_IRUSR | S_IWUSR) != 0)
            error.assign(errno, boost::system::system_category());
        if (!error) socket_.listen(Socket::max_listen_connections, error);
        if (error) path_.clear();  // not ours
        return error;
    }

    void accept() {
        socket_.async_accept([self = shared_from_this()](const boost::system::error_code& error,
                                                         StreamSocket socket) {
            if (!self->socket_.is_open() || error == asio::error::operation_aborted) return;
            if (error) return self->wait();
            self->accepted_(std::move(socket));
            self->accept();
        });
    }

    void stop() {
        boost::system::error_code ignored;
        pause_.cancel();
        if (socket_.is_open() && !path_.empty()) ::unlink(path_.c_str());
        socket_.close(ignored);
    }

  private:
    // Out of file descriptors: one will be free again.
    void wait() {
        pause_.expires_after(std::chrono::milliseconds(100));
        pause_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
            if (!error && self->socket_.is_open()) self->accept();
        });
    }

    Socket socket_;
    asio::steady_timer pause_;
    std::string path_;
    std::function<void(StreamSocket)> accepted_;
};

class Owner : public Listening {
  public:
    explicit Owner(std::shared_ptr<Acceptor> acceptor) : acceptor_(std::move(acceptor)) {}
    ~Owner() override { acceptor_->stop(); }

  private:
    std::shared_ptr<Acceptor> acceptor_;
};

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view text) {
    if (text.starts_with("unix:")) return parse_unix(text, text.substr(5));
    if (text.starts_with("tcp:")) return parse_tcp(text, text.substr(4));
    if (text.starts_with("tls:"))
        return Error{Error::Code::unsupported,
                     "tls: is not offered by this release; use unix:, or tcp: on the loopback",
                     std::string(text)};
    return bad(text, "expected tcp:ADDRESS:PORT or unix:PATH");
}

Result<std::unique_ptr<Listening>> listen(asio::io_context& loop, std::string_view text,
                                          std::function<void(StreamSocket)> accepted) {
    const auto at = parse_endpoint(text);
    if (!at) return at.error();
    if (!at->unix_path.empty())
        if (auto cleared = clear_path(loop, text, *at); !cleared) return cleared.error();
    auto acceptor = std::make_shared<Acceptor>(loop, at->unix_path, std::move(accepted));
    if (const auto error = acceptor->open(at->address); error)
        return Error{Error::Code::unavailable, "cannot listen: " + error.message(),
                     std::string(text)};
    acceptor->accept();
    return std::unique_ptr<Listening>(std::make_unique<Owner>(std::move(acceptor)));
}

void connect(asio::io_context& loop, const Endpoint& to,
             std::function<void(Result<std::shared_ptr<StreamSocket>>)> done) {
    auto socket = std::make_shared<StreamSocket>(loop);
    socket->async_connect(to.address,
                          [socket, done = std::move(done)](const boost::system::error_code& error) {
                              if (error)
                                  done(Error{Error::Code::unavailable, error.message(), {}});
                              else
                                  done(socket);
                          });
}

}  // namespace sluice::openflow
