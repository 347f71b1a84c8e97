// SPDX-License-Identifier: Apache-2.0
#include "dataplane/http/server.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <tuple>
#include <unordered_set>

namespace sluice::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using Milliseconds = std::chrono::milliseconds;

// How long a refused client may go on sending before the connection is torn down. Closing
// at once would reset it, and it would never read the refusal (RFC 9112 section 9.6).
constexpr Milliseconds kLingering{2'000};

unsigned status_of(const error_code& error) {
    if (error == beast::http::error::body_limit) return 413;
    if (error == beast::http::error::header_limit) return 431;
    return 400;
}

std::string sentence_of(unsigned status, const Limits& limits, const error_code& error) {
    switch (status) {
        case 408:
            return "the request took too long to arrive";
        case 413:
            return "the body is larger than " + std::to_string(limits.body_octets) + " octets";
        case 431:
            return "the header is larger than " + std::to_string(limits.header_octets) + " octets";
        case 503:
            return "too many connections";
        default:
            return "malformed HTTP: " + error.message();
    }
}

}  // namespace

struct Server::Impl : std::enable_shared_from_this<Server::Impl> {
    // One client. Its coroutine holds the only lasting reference, the server a plain
    // pointer with which it can close the socket.
    // How far its present request has come; of the first four the first to make room.
    enum class Stage : std::uint8_t { refused, header, idle, body, answering };
    using Peer = std::array<unsigned char, 16>;

    struct Connection {
        tcp::socket socket;
        asio::steady_timer timer;
        beast::flat_buffer buffer;
        std::uint64_t armed = 0;  // which deadline counts; older ones must not fire
        bool expired = false;
        Peer peer;
        Stage stage = Stage::header;
        std::uint64_t since = 0;  // in this stage, in the order in which they came to theirs

        Connection(tcp::socket accepted, std::size_t limit)
            : socket(std::move(accepted)),
              timer(socket.get_executor()),
              buffer(limit),
              peer(peer_of(socket)) {}

        static void arm(const std::shared_ptr<Connection>& self, Milliseconds time) {
            self->expired = false;
            const auto turn = ++self->armed;
            self->timer.expires_after(time);
            self->timer.async_wait([weak = std::weak_ptr(self), turn](error_code error) {
                const auto connection = weak.lock();
                if (error || !connection || connection->armed != turn) return;
                connection->expired = true;
                connection->socket.cancel(error);
            });
        }
        void disarm() {
            ++armed;
            timer.cancel();
        }
    };
    using ConnectionPtr = std::shared_ptr<Connection>;
    using Parser = beast::http::request_parser<beast::http::string_body>;
    using Message = beast::http::response<beast::http::string_body>;

    asio::io_context& context;
    tcp::acceptor acceptor;
    Limits limits;
    Handler handler;
    Refuse refuse;
    Admit admit;
    std::unordered_set<Connection*> open;
    std::uint64_t moves = 0;  // from one stage to another
    bool closed = false;

    Impl(asio::io_context& io, Limits bounds, Handler handle, Refuse refused, Admit admitted)
        : context(io),
          acceptor(io),
          limits(bounds),
          handler(std::move(handle)),
          refuse(std::move(refused)),
          admit(std::move(admitted)) {
        if (!refuse)
            refuse = [](unsigned status, const std::string& detail) {
                return Response{status, "text/plain", {}, detail + "\n"};
            };
    }

    Result<void> bind(const ListenAddress& address) {
        error_code error;
        const auto ip = asio::ip::make_address(address.address, error);
        const tcp::endpoint endpoint(ip, address.port);
        if (!error) acceptor.open(endpoint.protocol(), error);
        if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
        if (!error) acceptor.bind(endpoint, error);
        if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
        if (error)
            return Error{Error::Code::unavailable,
                         "cannot listen on " + address.address + ":" +
                             std::to_string(address.port) + ": " + error.message(),
                         {}};
        return {};
    }

    void close() {
        closed = true;
        error_code ignored;
        acceptor.close(ignored);
        for (auto* connection : open) connection->socket.close(ignored);
    }

    static Peer peer_of(const tcp::socket& socket) {
        error_code error;
        const auto address = socket.remote_endpoint(error).address();
        Peer peer{};
        if (error) return peer;
        if (address.is_v4())
            return asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4()).to_bytes();
        peer = address.to_v6().to_bytes();
        if (!address.to_v6().is_v4_mapped()) std::fill(peer.begin() + 8, peer.end(), '\0');
        return peer;
    }

    void enter(Connection& connection, Stage stage) {
        connection.stage = stage;
        connection.since = ++moves;
    }

    // The connection whose place another one may take: anyone's, or of one peer.
    [[nodiscard]] Connection* least(const Peer* peer) const {
        Connection* result = nullptr;
        for (auto* one : open) {
            if (one->stage == Stage::answering || (peer && one->peer != *peer)) continue;
            if (!result ||
                std::tie(one->stage, one->since) < std::tie(result->stage, result->since))
                result = one;
        }
        return result;
    }
    // Its coroutine ends with the operation that it waits for.
    void evict(Connection& connection) {
        error_code ignored;
        connection.socket.close(ignored);
        open.erase(&connection);
    }
    // False: nothing can make room for it.
    bool make_room(const Peer& peer) {
        const auto unfinished = std::count_if(open.begin(), open.end(), [&](const auto* one) {
            return one->stage != Stage::answering && one->peer == peer;
        });
        if (static_cast<std::size_t>(unfinished) >= limits.unfinished_per_peer)
            if (auto* own = least(&peer)) evict(*own);
        while (open.size() >= limits.connections) {
            auto* other = least(nullptr);
            if (!other) return false;
            evict(*other);
        }
        return true;
    }

    static asio::awaitable<void> accept(std::shared_ptr<Impl> self) {
        while (!self->closed) {
            error_code error;
            tcp::socket socket(self->context);
            co_await self->acceptor.async_accept(socket,
                                                 asio::redirect_error(asio::use_awaitable, error));
            if (self->closed) co_return;
            if (error) {  // out of descriptors, most likely: let some go first
                asio::steady_timer pause(self->context, Milliseconds(100));
                co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
                continue;
            }
            socket.set_option(tcp::no_delay(true), error);
            auto connection = std::make_shared<Connection>(
                std::move(socket), self->limits.header_octets + self->limits.body_octets + 65'536);
            asio::co_spawn(self->context, serve(self, std::move(connection)), asio::detached);
        }
    }

    static asio::awaitable<void> serve(std::shared_ptr<Impl> self, ConnectionPtr connection) {
        // Also when the coroutine is destroyed in its middle.
        struct Registered {
            Impl& impl;
            Connection* connection;
            Registered(Impl& server, Connection* entry) : impl(server), connection(entry) {
                impl.open.insert(connection);
            }
            ~Registered() { impl.open.erase(connection); }
            Registered(const Registered&) = delete;
            Registered& operator=(const Registered&) = delete;
        };
        const bool has_room = self->make_room(connection->peer);
        const Registered registered(*self, connection.get());
        self->enter(*connection, Stage::header);
        if (!has_room) {
            co_await refuse_with(*self, connection, 503, {});
            co_return;
        }
        bool first = true;
        while (!self->closed && co_await turn(*self, connection, first)) {
            first = false;
            self->enter(*connection, Stage::idle);
        }
        error_code ignored;
        connection->socket.shutdown(tcp::socket::shutdown_both, ignored);
    }

    // One request and its response. False: the connection is done.
    static asio::awaitable<bool> turn(Impl& self, const ConnectionPtr& connection, bool first) {
        error_code error;
        auto& socket = connection->socket;
        auto token = asio::redirect_error(asio::use_awaitable, error);

        if (connection->buffer.size() == 0) {  // else: the client has pipelined
            Connection::arm(connection, first ? self.limits.header_time : self.limits.idle_time);
            const auto octets =
                co_await socket.async_read_some(connection->buffer.prepare(4096), token);
            if (error && first && connection->expired)
                co_await refuse_with(self, connection, 408, error);
            if (error) co_return false;
            connection->buffer.commit(octets);
            if (!first) self.enter(*connection, Stage::header);
        }
        Parser parser;
        parser.header_limit(static_cast<std::uint32_t>(self.limits.header_octets));
        parser.body_limit(self.limits.body_octets);
        Connection::arm(connection, self.limits.header_time);
        co_await beast::http::async_read_header(socket, connection->buffer, parser, token);
        if (!error && parser.content_length().value_or(0) > self.limits.body_octets)
            error = beast::http::error::body_limit;
        if (!error && self.admit)
            if (auto answer = self.admit(plain(parser.get()))) {
                co_await refuse_with(self, connection, *std::move(answer));
                co_return false;
            }
        if (!error && !parser.is_done()) {
            self.enter(*connection, Stage::body);
            Connection::arm(connection, self.limits.body_time);
            if (beast::iequals(parser.get()[beast::http::field::expect], "100-continue")) {
                beast::http::response<beast::http::empty_body> go_on{beast::http::status::continue_,
                                                                     11};
                co_await beast::http::async_write(socket, go_on, token);
            }
            if (!error) co_await beast::http::async_read(socket, connection->buffer, parser, token);
        }
        connection->disarm();
        if (connection->expired) {
            co_await refuse_with(self, connection, 408, error);
            co_return false;
        }
        // The client is gone, or the network: nobody reads an answer.
        if (error && (error == beast::http::error::end_of_stream ||
                      error == beast::http::error::partial_message ||
                      error.category() == boost::system::system_category()))
            co_return false;
        if (error) {
            co_await refuse_with(self, connection, status_of(error), error);
            co_return false;
        }
        const bool keep_alive = parser.get().keep_alive();
        const unsigned version = parser.get().version();
        self.enter(*connection, Stage::answering);
        auto message = parser.release();
        auto request = plain(message);
        request.body = std::move(message.body());
        const Reading reading{
            .version = version, .keep_alive = keep_alive, .body = request.method != "HEAD"};
        if (!reading.body) request.method = "GET";
        auto response = co_await answer(self, connection, std::move(request));
        co_return co_await write(self, connection, std::move(response), reading);
    }

    // Without the body.
    static Request plain(const beast::http::request<beast::http::string_body>& message) {
        Request request;
        request.method = std::string(message.method_string());
        const std::string_view target{message.target().data(), message.target().size()};
        const auto question = target.find('?');
        request.path = std::string(target.substr(0, question));
        if (question != std::string_view::npos)
            request.query = std::string(target.substr(question + 1));
        for (const auto& field : message)
            request.headers.push_back(
                {std::string(field.name_string()), std::string(field.value())});
        return request;
    }

    // Suspends until the handler has responded. A handler that drops `respond` uncalled
    // destroys this coroutine and so closes the connection.
    static asio::awaitable<Response> answer(Impl& self, const ConnectionPtr& connection,
                                            Request request) {
        auto initiate = [&self, &connection](auto completion, Request&& wanted) {
            auto shared = std::make_shared<decltype(completion)>(std::move(completion));
            self.handler(
                std::move(wanted), [shared, executor = connection->socket.get_executor(),
                                    done = std::make_shared<bool>(false)](Response response) {
                    if (std::exchange(*done, true)) return;
                    asio::post(executor, [shared, response = std::move(response)]() mutable {
                        (std::move(*shared))(std::move(response));
                    });
                });
        };
        co_return co_await asio::async_initiate<const asio::use_awaitable_t<>&, void(Response)>(
            initiate, asio::use_awaitable, std::move(request));
    }

    // How the client reads what it is answered.
    struct Reading {
        unsigned version = 11;
        bool keep_alive = false;
        bool body = true;
    };

    static asio::awaitable<bool> write(Impl& self, const ConnectionPtr& connection,
                                       Response response, Reading reading) {
        Message message;
        message.version(reading.version);
        message.result(response.status);
        for (const auto& header : response.headers) message.insert(header.name, header.value);
        if (!response.content_type.empty())
            message.set(beast::http::field::content_type, response.content_type);
        message.body() = std::move(response.body);
        message.keep_alive(reading.keep_alive);
        if (response.status != 204 && response.status != 304)
            message.content_length(message.body().size());
        error_code error;
        Connection::arm(connection, self.limits.write_time);
        auto token = asio::redirect_error(asio::use_awaitable, error);
        beast::http::response_serializer<beast::http::string_body> serializer(message);
        if (reading.body)
            co_await beast::http::async_write(connection->socket, serializer, token);
        else
            co_await beast::http::async_write_header(connection->socket, serializer, token);
        connection->disarm();
        co_return !error && reading.keep_alive;
    }

    static asio::awaitable<void> refuse_with(Impl& self, const ConnectionPtr& connection,
                                             unsigned status, error_code cause) {
        co_await refuse_with(self, connection,
                             self.refuse(status, sentence_of(status, self.limits, cause)));
    }

    static asio::awaitable<void> refuse_with(Impl& self, const ConnectionPtr& connection,
                                             Response response) {
        self.enter(*connection, Stage::refused);
        co_await write(self, connection, std::move(response), {});
        error_code error;
        connection->socket.shutdown(tcp::socket::shutdown_send, error);
        connection->buffer.clear();
        Connection::arm(connection, kLingering);
        while (!error)
            co_await connection->socket.async_read_some(
                connection->buffer.prepare(32'768),
                asio::redirect_error(asio::use_awaitable, error));
        connection->disarm();
    }
};

Server::Server(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() {
    impl_->close();
}

Result<std::unique_ptr<Server>> Server::listen(boost::asio::io_context& context,
                                               const ListenAddress& address, Limits limits,
                                               Handler handler, Refuse refuse, Admit admit) {
    auto impl = std::make_shared<Impl>(context, limits, std::move(handler), std::move(refuse),
                                       std::move(admit));
    if (auto bound = impl->bind(address); !bound) return bound.error();
    asio::co_spawn(context, Impl::accept(impl), asio::detached);
    return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::uint16_t Server::port() const {
    error_code ignored;
    return impl_->acceptor.local_endpoint(ignored).port();
}
std::size_t Server::connections() const {
    return impl_->open.size();
}

}  // namespace sluice::http
