// SPDX-License-Identifier: Apache-2.0
// Opens and closes TCP connections through the gateway, both ends on one core.
//
// As engine.hpp: no allocation per packet, one thread with an lcore, a pool of its own. Segments
// are not sent again: what is lost fails its connection.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "bench/pktgen/connections.hpp"
#include "bench/pktgen/engine.hpp"

namespace sluice::pktgen {

struct ConnectionTrial {
    double rate = 0;  // connections a second; 0: a new one whenever fewer than 256 are open
    double seconds = 1;
    std::uint64_t connections = 0;  // ends after so many; 0: after the time alone
    bool arrivals = true;           // as of a Trial
};

struct ConnectionsMeasured {
    double asked = 0;  // connections a second
    ConnectionCounts counts;
    std::uint64_t sent = 0;     // segments
    std::uint64_t refused = 0;  // ... for which the device had no room
    std::uint64_t misdelivered = 0, corrupt = 0, foreign = 0, skipped = 0;
    double seconds = 0;  // that it has opened connections for
    Histogram duration;  // cycles from the SYN to the last ACK's arrival
    double hertz = 0;

    [[nodiscard]] std::uint64_t failed() const { return counts.opened - counts.completed; }
    // Complete ones, a second.
    [[nodiscard]] double rate() const {
        return seconds > 0 ? static_cast<double>(counts.completed) / seconds : 0;
    }
    [[nodiscard]] bool kept_up() const { return skipped * 200 <= counts.opened + skipped; }
};

class ConnectionEngine {
  public:
    static Result<std::unique_ptr<ConnectionEngine>> create(const Profile& profile,
                                                            const Network& network,
                                                            std::vector<Link> links,
                                                            Progress& progress);
    ~ConnectionEngine();
    ConnectionEngine(const ConnectionEngine&) = delete;
    ConnectionEngine& operator=(const ConnectionEngine&) = delete;

    ConnectionsMeasured run(const ConnectionTrial& trial);

  private:
    static constexpr std::uint16_t kBurst = 32;
    struct Burst {
        std::array<rte_mbuf*, kBurst> packets;
        std::uint16_t count = 0;
    };

    ConnectionEngine(const Profile& profile, const Network& network, std::vector<Link> links,
                     Progress& progress);
    void send(const Segment& segment);
    void flush(std::size_t link);
    void receive();
    void take(std::size_t link, rte_mbuf* packet, std::uint64_t now);

    std::vector<Link> links_;
    Progress& progress_;
    Lanes numbering_;
    Templates templates_;
    std::vector<Place> places_;  // by lane
    rte_mempool* pool_ = nullptr;
    std::array<Burst, 2> bursts_;
    Connections connections_;
    ConnectionsMeasured measured_;
    bool arrivals_ = true;
};

}  // namespace sluice::pktgen
