// SPDX-License-Identifier: Apache-2.0
// The switch: serves OpenFlow 1.3 over a Backend.
//
// Purpose: everything between octets and Backend::commit. It listens on a unix socket,
// connects out to its controllers and keeps trying, and gives every connection the same
// service: flow and meter modifications, bundles (ONF extension 230), barriers,
// multiparts, roles. Whatever it refuses gets OpenFlow's own error, whatever is malformed
// an error or a closed connection.
//
// Ownership: backend and io_context outlive it. Threads: the io_context's only. Cost: per
// modification the codec's, plus a search in the bundle's staged changes; a dump holds at
// most one megabyte of replies a connection. Failure: a controller that cannot be reached
// is tried again with exponential back-off and jitter, for ever; a socket that cannot be
// listened on is start()'s error.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/openflow/backend.hpp"
#include "dataplane/openflow/connection.hpp"

namespace sluice::openflow {

struct SwitchSettings {
    std::string listen;                    // "unix:/run/sluice/gw1.of"; empty: none
    std::vector<std::string> controllers;  // "tcp:127.0.0.1:6653" (loopback only), "unix:PATH"
    // Accepted at a time. One more takes the place of the one that has been silent longest, of
    // those first that never said anything; nobody who spoke within `silence` is in its way.
    std::size_t connections = 64;
    std::chrono::milliseconds silence{10'000};
    std::size_t bundles = 16;                          // open at a time, of one connection
    std::size_t bundle_messages = 2'000'000;           // in one bundle
    std::size_t bundle_octets = std::size_t{1} << 29;  // in all bundles together
    std::chrono::milliseconds bundle_idle{60'000};     // then it is discarded
    std::chrono::milliseconds first_retry{100};        // of a controller
    std::chrono::milliseconds longest_retry{2'000};
    // For `silence` and `bundle_idle`; `limits` are measured by the steady clock itself.
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
    ConnectionLimits limits;
};

struct SwitchCounters {
    std::uint64_t connections = 0;    // that exchanged HELLOs, ever
    std::uint64_t messages = 0;       // received
    std::uint64_t modifications = 0;  // received, in bundles or not
    std::uint64_t commits = 0;        // asked of the backend
    std::uint64_t errors = 0;         // sent
};

class Switch {
  public:
    // `log` gets one sentence per event worth a line in a log; may be empty.
    Switch(boost::asio::io_context& loop, Backend& backend, SwitchSettings settings,
           std::function<void(const std::string&)> log);
    ~Switch();
    Switch(const Switch&) = delete;
    Switch& operator=(const Switch&) = delete;

    // Checks the addresses, listens (replacing a dead socket file, refusing a live one) and
    // begins to connect.
    Result<void> start();
    // Serves a socket that is already connected, as a test or a socketpair has it.
    void serve(Connection::Socket socket);
    [[nodiscard]] SwitchCounters counters() const;

    struct State;

  private:
    std::shared_ptr<State> state_;
};

// What is wrong with an address as `listen` or a controller, if anything; for --check.
Result<void> check_listen_address(std::string_view address);
Result<void> check_controller_address(std::string_view address);

}  // namespace sluice::openflow
