// SPDX-License-Identifier: Apache-2.0
// Where OpenFlow connections come from and go to: "unix:PATH", and "tcp:ADDRESS:PORT" on
// the loopback only.
//
// Threads: the io_context's only. Ownership: a Listening stops when it is destroyed; what
// it accepted lives on. Failure: Results with a sentence that names the address.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "dataplane/wire/result.hpp"

namespace sluice::openflow {

using StreamSocket = boost::asio::generic::stream_protocol::socket;
using StreamEndpoint = boost::asio::generic::stream_protocol::endpoint;

struct Endpoint {
    StreamEndpoint address;
    std::string unix_path;  // empty for TCP
};

// "tcp:127.0.0.1:6653", "tcp:[::1]:6653", "unix:/run/sluice/gw1.of".
Result<Endpoint> parse_endpoint(std::string_view text);

class Listening {
  public:
    virtual ~Listening() = default;
};

// Replaces a socket file that nobody listens on; refuses one that is in use, and a file
// that is no socket. The socket file is its owner's only.
Result<std::unique_ptr<Listening>> listen(boost::asio::io_context& loop, std::string_view text,
                                          std::function<void(StreamSocket)> accepted);

// `done` gets the socket, or nothing and why. It is not called within connect().
void connect(boost::asio::io_context& loop, const Endpoint& to,
             std::function<void(Result<std::shared_ptr<StreamSocket>>)> done);

}  // namespace sluice::openflow
