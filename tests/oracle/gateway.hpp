// SPDX-License-Identifier: Apache-2.0
// The gateway for the oracle: committed tables, their records of reachability, and one worker
// between two ports that are rings, under a clock that stands still until it is told to move.
//
// Threads: one, which is the worker and the control thread by turns. Ownership: everything but
// the two devices, which the process has once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataplane/control/tables.hpp"
#include "dataplane/policy/function.hpp"
#include "dataplane/worker/worker.hpp"
#include "tests/oracle/cloud.hpp"

namespace sluice::oracle {

using Octets = std::vector<std::uint8_t>;

inline constexpr PortId kUnderlay{1}, kUplink{2};

class Gateway final : public Tables {
  public:
    Gateway();
    ~Gateway() override;
    Gateway(const Gateway&) = delete;
    Gateway& operator=(const Gateway&) = delete;

    std::vector<policy::ZoneSlot> commit(const openflow::Changes& changes) override;

    struct Frame {
        PortId port;
        Octets octets;
    };
    struct Dropped {
        DropReason reason = DropReason::none;
        policy::ZoneSlot zone;
        std::uint64_t packets = 0;
    };
    // What became of a frame, or of what it set free.
    struct Fate {
        std::vector<Frame> sent;
        std::vector<Dropped> dropped;
        // Connections that it opened, with the port that a NAT gateway chose, and others that went
        // for them.
        struct Connection {
            Vni from;
            Tuple arrives, leaves;  // their first packet
            std::size_t after = 0;  // so many were opened before
        };
        std::vector<Connection> opened, evicted;
        bool walked = false;
    };
    // Later by so much; what is to end by then, ends.
    Fate advance(std::uint64_t nanoseconds);
    Fate receive(PortId port, std::span<const std::uint8_t> frame);
    // All of them at once.
    Fate receive_burst(PortId port, std::span<const Octets> frames);
    // The tables were there before: connections are picked up in their middle.
    void restarted() { shared_.restarted = now_; }

    // Live connections; a sentence for each of them that does not hold together.
    struct Flows {
        struct One {
            Vni from, to;
            Tuple forward, reverse;  // as the packets of each direction arrive
        };
        std::vector<One> live;
        std::uint64_t unanswered = 0;  // as counted against limits
        std::uint64_t ports = 0;       // of NAT gateways' addresses, by the gauge
        std::vector<std::string> wrong;
    };
    [[nodiscard]] Flows flows() const;
    // Nothing is left of anybody: sentences about what is.
    [[nodiscard]] std::vector<std::string> leftovers() const;

    [[nodiscard]] const policy::Snapshot& policy() const { return tables_->store.current(); }
    // Packets by state, direction and event of the TCP table's cell that they met.
    using Cells = std::array<
        std::array<std::array<std::uint64_t, static_cast<std::size_t>(session::TcpEvent::count)>,
                   2>,
        static_cast<std::size_t>(session::TcpState::count)>;
    [[nodiscard]] static const Cells& cells();

  private:
    void turn();
    static void enqueue(PortId port, std::span<const std::uint8_t> frame);
    void note_cell(PortId port, std::span<const std::uint8_t> frame) const;
    void collect(Fate& fate);

    std::uint64_t now_;
    std::vector<port::Port> ports_;
    policy::Pipeline pipeline_;
    std::unique_ptr<control::Tables> tables_;
    worker::Shared shared_;
    std::unique_ptr<worker::Worker> worker_;
    std::vector<std::array<std::uint64_t, kDropReasons>> counted_;  // by ZoneSlot
    std::uint64_t walks_ = 0;
    std::uint32_t zones_ = 2;  // slots that are or were in use
    unsigned free_before_ = 0;
};

}  // namespace sluice::oracle
