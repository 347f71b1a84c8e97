// SPDX-License-Identifier: Apache-2.0
// One OpenFlow connection, either end: framing, HELLO, ECHO, back-pressure.
//
// Purpose: turns a byte stream into whole messages and back. It answers HELLO and ECHO by
// itself, so its user sees only the rest. It ends, with a sentence, when the peer closes,
// speaks no OpenFlow 1.3, sends a length below 8, leaves a message half sent, does not
// answer an ECHO, or does not read what is sent to it.
//
// Ownership: held by shared_ptr; the pending operations keep it alive until it is closed.
// The handler must outlive it or call close() first, after which nothing is called.
// Threads: its io_context's only. Cost: one read and one write call for whatever is there;
// everything sent between two turns of the loop goes out in one write. Units: octets.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "dataplane/openflow/codec.hpp"

namespace sluice::openflow {

struct ConnectionLimits {
    // Reading pauses while more than this waits to be written ...
    std::size_t pause_reading = std::size_t{1} << 20;
    // ... and a connection on which even more piles up is closed.
    std::size_t longest_queue = std::size_t{64} << 20;
    std::chrono::milliseconds hello{10'000};            // until the peer's HELLO
    std::chrono::milliseconds partial_message{10'000};  // from its first octet to its last
    std::chrono::milliseconds stalled_write{30'000};    // without one octet taken
    std::chrono::milliseconds echo_after{5'000};        // of silence
    std::chrono::milliseconds echo_answer{10'000};      // after that echo, until it is closed
};

class Connection : public std::enable_shared_from_this<Connection> {
  public:
    using Socket = boost::asio::generic::stream_protocol::socket;

    class Handler {
      public:
        virtual ~Handler() = default;
        // Both HELLOs have been exchanged.
        virtual void on_open() = 0;
        // Any message but HELLO and ECHO; the view holds during the call.
        virtual void on_message(MessageView message) = 0;
        // All that was queued is written.
        virtual void on_drained() = 0;
        // The last call. The peer closed, or `reason` says what was wrong.
        virtual void on_closed(const std::string& reason) = 0;
    };

    // `socket` is connected. Sets TCP_NODELAY where it is TCP.
    static std::shared_ptr<Connection> start(Socket socket, Handler& handler,
                                             const ConnectionLimits& limits = {});
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // Whole messages are appended here, then flush() is called; once per turn is enough.
    Bytes& out();
    void flush();
    // Octets not yet taken by the kernel.
    [[nodiscard]] std::size_t queued() const;
    // While paused, no further message is delivered; nestable.
    void pause();
    void resume();
    Xid next_xid();
    // Closes without calling the handler again. What is queued is written as far as the
    // kernel takes it at once.
    void close();
    [[nodiscard]] const std::string& peer() const;  // "unix:", "127.0.0.1:6653"

  private:
    friend struct ConnectionLoop;
    struct State;
    explicit Connection(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace sluice::openflow
