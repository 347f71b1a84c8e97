// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/connection.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstring>

namespace sluice::openflow {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kHeader = 8;
constexpr std::size_t kReadSize = std::size_t{256} << 10;
constexpr std::size_t kLongestMessage = 65535;
constexpr std::chrono::milliseconds kTick{500};

std::string peer_of(const Connection::Socket& socket) {
    boost::system::error_code error;
    const auto end = socket.remote_endpoint(error);
    if (error || end.protocol().family() == AF_UNIX) return "unix:";
    asio::ip::tcp::endpoint tcp;
    if (end.size() > tcp.capacity()) return "unknown";
    std::memcpy(tcp.data(), end.data(), end.size());
    tcp.resize(end.size());
    const std::string host = tcp.address().to_string(error);
    return (tcp.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(tcp.port());
}

}  // namespace

struct Connection::State {
    State(Socket stream, Handler& user, const ConnectionLimits& bounds)
        : socket(std::move(stream)), timer(socket.get_executor()), handler(&user), limits(bounds) {}

    Socket socket;
    asio::steady_timer timer;
    Handler* handler;  // null once closed
    ConnectionLimits limits;
    std::string peer;

    Bytes input = Bytes(kReadSize);
    std::size_t begin = 0, end = 0;      // of what is read and not yet delivered
    std::vector<std::uint64_t> aligned;  // the message in hand, where it must be copied
    Bytes output;                        // appended by the user
    Bytes writing;                       // held by the write under way
    std::size_t written = 0;
    std::size_t pauses = 0;
    std::uint32_t xid = 0;
    bool open = false, reading = false, write_pending = false, delivering = false;
    bool flush_posted = false;
    Clock::time_point started = Clock::now(), last_heard = started, last_write = started;
    Clock::time_point partial_since{};  // since when a message is half there; zero: none is
    Clock::time_point echo_sent{};      // zero: none is unanswered

    [[nodiscard]] std::size_t queued() const { return output.size() + writing.size() - written; }
};

Connection::Connection(std::unique_ptr<State> state) : state_(std::move(state)) {}
Connection::~Connection() = default;

// The loops of one connection: reading, writing, watching the time. Each step holds the
// connection alive through `self`.
struct ConnectionLoop {
    using Pointer = std::shared_ptr<Connection>;

    static void begin(const Pointer& self) {
        auto& state = *self->state_;
        append_hello(state.output, self->next_xid());
        write(self);
        read(self);
        tick(self);
    }

    // The peer's fault or end.
    static void fail(const Pointer& self, const std::string& reason) {
        auto& state = *self->state_;
        Connection::Handler* handler = std::exchange(state.handler, nullptr);
        self->close();
        if (handler != nullptr) handler->on_closed(reason);
    }

    static void read(const Pointer& self) {
        auto& state = *self->state_;
        if (state.reading || state.handler == nullptr || state.pauses > 0) return;
        if (state.queued() > state.limits.pause_reading) return;  // until it is written
        make_room(state);
        state.reading = true;
        state.socket.async_read_some(
            asio::buffer(state.input.data() + state.end, state.input.size() - state.end),
            [self](const boost::system::error_code& error, std::size_t count) {
                auto& now = *self->state_;
                now.reading = false;
                if (now.handler == nullptr) return;
                if (error) {
                    fail(self, error == asio::error::eof ? "the peer closed the connection"
                                                         : error.message());
                    return;
                }
                now.end += count;
                now.last_heard = Clock::now();
                now.echo_sent = {};
                deliver(self);
            });
    }

    // Leaves at least a whole message's room behind what is there.
    static void make_room(Connection::State& state) {
        if (state.input.size() - state.end > kLongestMessage) return;
        std::memmove(state.input.data(), state.input.data() + state.begin, state.end - state.begin);
        state.end -= state.begin;
        state.begin = 0;
    }

    static void deliver(const Pointer& self) {
        auto& state = *self->state_;
        if (state.delivering) return;
        state.delivering = true;
        while (state.handler != nullptr && state.pauses == 0 &&
               state.queued() <= state.limits.pause_reading) {
            const std::size_t available = state.end - state.begin;
            if (available < kHeader) break;
            const std::uint8_t* at = state.input.data() + state.begin;
            const std::size_t length = std::size_t{at[2]} << 8 | at[3];
            if (length < kHeader) {
                refuse(self, {at, kHeader});
                break;
            }
            if (available < length) break;
            state.begin += length;
            handle(self, align(state, at, length));
        }
        state.delivering = false;
        if (state.handler == nullptr) return;
        if (state.begin == state.end) state.begin = state.end = 0;
        watch_partial(state);
        self->flush();
        read(self);
    }

    static MessageView align(Connection::State& state, const std::uint8_t* at, std::size_t length) {
        if (reinterpret_cast<std::uintptr_t>(at) % 8 == 0) return {at, length};
        state.aligned.resize((length + 7) / 8);
        std::memcpy(state.aligned.data(), at, length);
        return {reinterpret_cast<const std::uint8_t*>(state.aligned.data()), length};
    }

    static void watch_partial(Connection::State& state) {
        const bool waits_for_octets = state.end > state.begin && state.pauses == 0 &&
                                      state.queued() <= state.limits.pause_reading;
        if (!waits_for_octets)
            state.partial_since = {};
        else if (state.partial_since == Clock::time_point{})
            state.partial_since = Clock::now();
    }

    static void refuse(const Pointer& self, MessageView start) {
        auto& state = *self->state_;
        const Bytes copy(start.begin(), start.end());
        append_error(state.output, error::kBadLength, copy);
        fail(self, "a message says that it is shorter than its own header");
    }

    static void handle(const Pointer& self, MessageView message) {
        auto& state = *self->state_;
        state.partial_since = {};
        const Header head = header(message);
        constexpr std::uint8_t kHello = 0, kEchoRequest = 2, kEchoReply = 3;
        if (!state.open) {
            if (head.type != kHello) return fail(self, "the first message is no HELLO");
            greet(self, message);
        } else if (head.version != kVersion) {
            append_error(state.output, error::kBadVersion, message);
        } else if (head.type == kEchoRequest) {
            append_echo_reply(state.output, message);
        } else if (head.type != kHello && head.type != kEchoReply) {
            state.handler->on_message(message);
        }
    }

    static void greet(const Pointer& self, MessageView hello) {
        auto& state = *self->state_;
        if (!hello_admits_us(hello)) {
            append_error(state.output, error::kHelloIncompatible, hello);
            return fail(self, "the peer speaks no OpenFlow 1.3");
        }
        state.open = true;
        state.handler->on_open();
    }

    static void write(const Pointer& self) {
        auto& state = *self->state_;
        if (state.write_pending || state.handler == nullptr || state.output.empty()) return;
        state.writing.clear();
        state.writing.swap(state.output);
        state.written = 0;
        state.last_write = Clock::now();
        continue_write(self);
    }

    static void continue_write(const Pointer& self) {
        auto& state = *self->state_;
        state.write_pending = true;
        state.socket.async_write_some(
            asio::buffer(state.writing.data() + state.written,
                         state.writing.size() - state.written),
            [self](const boost::system::error_code& error, std::size_t count) {
                auto& now = *self->state_;
                now.write_pending = false;
                if (now.handler == nullptr) return;
                if (error) return fail(self, error.message());
                now.written += count;
                now.last_write = Clock::now();
                if (now.written < now.writing.size()) return continue_write(self);
                now.writing.clear();
                now.written = 0;
                if (now.output.empty()) now.handler->on_drained();
                write(self);
                deliver(self);  // what waited for the queue to shrink
            });
    }

    static void tick(const Pointer& self) {
        auto& state = *self->state_;
        state.timer.expires_after(std::min(kTick, shortest(state.limits)));
        state.timer.async_wait([self](const boost::system::error_code& error) {
            if (error || self->state_->handler == nullptr) return;
            if (const char* reason = overdue(self)) return fail(self, reason);
            tick(self);
        });
    }

    static std::chrono::milliseconds shortest(const ConnectionLimits& limits) {
        return std::min({limits.hello, limits.partial_message, limits.stalled_write,
                         limits.echo_after, limits.echo_answer});
    }

    // What has taken too long, if anything. Sends the ECHO that is due.
    static const char* overdue(const Pointer& self) {
        auto& state = *self->state_;
        const auto now = Clock::now();
        const auto since = [now](Clock::time_point when, std::chrono::milliseconds limit) {
            return when != Clock::time_point{} && now - when >= limit;
        };
        if (!state.open && since(state.started, state.limits.hello)) return "no HELLO in time";
        if (since(state.partial_since, state.limits.partial_message))
            return "half a message, then silence";
        if (state.queued() > 0 && since(state.last_write, state.limits.stalled_write))
            return "the peer does not read what it is sent";
        // A connection that is not read because of its own queue or user cannot be heard.
        if (!state.open || !state.reading) return nullptr;
        if (since(state.echo_sent, state.limits.echo_answer)) return "no answer to an ECHO";
        if (state.echo_sent == Clock::time_point{} &&
            since(state.last_heard, state.limits.echo_after)) {
            append_echo_request(state.output, self->next_xid());
            state.echo_sent = now;
            self->flush();
        }
        return nullptr;
    }
};

std::shared_ptr<Connection> Connection::start(Socket socket, Handler& handler,
                                              const ConnectionLimits& limits) {
    boost::system::error_code ignored;
    std::string peer = peer_of(socket);
    if (peer != "unix:") socket.set_option(asio::ip::tcp::no_delay(true), ignored);
    socket.non_blocking(true, ignored);
    std::shared_ptr<Connection> self(
        new Connection(std::make_unique<State>(std::move(socket), handler, limits)));
    self->state_->peer = std::move(peer);
    asio::post(self->state_->socket.get_executor(), [self] {
        if (self->state_->handler != nullptr) ConnectionLoop::begin(self);
    });
    return self;
}

Bytes& Connection::out() {
    return state_->output;
}

void Connection::flush() {
    // One write for all that this turn of the loop appends.
    if (state_->flush_posted || state_->handler == nullptr) return;
    if (state_->output.empty() && state_->queued() <= state_->limits.longest_queue) return;
    state_->flush_posted = true;
    asio::post(state_->socket.get_executor(), [self = shared_from_this()] {
        self->state_->flush_posted = false;
        if (self->state_->handler == nullptr) return;
        ConnectionLoop::write(self);
        if (self->state_->queued() > self->state_->limits.longest_queue)
            ConnectionLoop::fail(self, "the peer does not read what it is sent");
    });
}

std::size_t Connection::queued() const {
    return state_->queued();
}

void Connection::pause() {
    ++state_->pauses;
}

void Connection::resume() {
    if (state_->pauses == 0 || --state_->pauses > 0) return;
    asio::post(state_->socket.get_executor(), [self = shared_from_this()] {
        if (self->state_->handler != nullptr) ConnectionLoop::deliver(self);
    });
}

Xid Connection::next_xid() {
    return Xid{++state_->xid};
}

void Connection::close() {
    state_->handler = nullptr;
    state_->timer.cancel();
    boost::system::error_code ignored;
    if (!state_->socket.is_open()) return;
    if (!state_->write_pending && !state_->output.empty())
        state_->socket.write_some(asio::buffer(state_->output), ignored);
    state_->socket.shutdown(Socket::shutdown_both, ignored);
    state_->socket.close(ignored);
}

const std::string& Connection::peer() const {
    return state_->peer;
}

}  // namespace sluice::openflow
