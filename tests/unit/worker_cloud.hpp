// SPDX-License-Identifier: Apache-2.0
// A VPC with three machines that may do everything, and a TCP connection of one to another; for
// tests of the worker.
#pragma once

#include "dataplane/worker/state.hpp"
#include "tests/unit/worker_gateway.hpp"

namespace sluice::tests {

struct Cloud : Gateway {
    Cloud() {
        build_vpc();
        open_group();
        a = add_machine(5);
        b = add_machine(6);
        c = add_machine(8, 2);
    }
    // A TCP segment of a's connection to b, or back.
    Bytes forth(std::uint8_t flags, std::uint32_t sequence = 1000, std::uint32_t ack = 5000) const {
        return frame_of(
            a,
            {Ipv4{.source = a.address, .destination = b.address}, Tcp{.source = 1025,
                                                                      .destination = 80,
                                                                      .sequence = sequence,
                                                                      .acknowledgement = ack,
                                                                      .flags = flags}},
            b.mac);
    }
    Bytes back(std::uint8_t flags, std::uint32_t sequence = 5000, std::uint32_t ack = 1001) const {
        return frame_of(
            b,
            {Ipv4{.source = b.address, .destination = a.address}, Tcp{.source = 80,
                                                                      .destination = 1025,
                                                                      .sequence = sequence,
                                                                      .acknowledgement = ack,
                                                                      .flags = flags}},
            a.mac);
    }
    Bytes datagram(const Machine& from, const Machine& to, std::uint16_t port = 1025) const {
        return frame_of(from,
                        {Ipv4{.source = from.address, .destination = to.address},
                         Udp{.source = port, .destination = 2000}},
                        to.mac);
    }
    void check_passes(const Bytes& frame) {
        const std::uint64_t before = all_drops();
        receive(kUnderlay, frame);
        CHECK(sent(kUnderlay).size() == 1);
        CHECK(all_drops() == before);
    }
    void establish() {
        check_passes(forth(wire::tcp::kSyn, 1000, 0));
        check_passes(back(wire::tcp::kSyn | wire::tcp::kAck, 4999, 1001));
        check_passes(forth(wire::tcp::kAck, 1001, 5000));
    }
    static nfv::RuleRow rule(nfv::Direction direction, Family family, std::uint64_t cookie) {
        nfv::RuleRow row;
        row.direction = direction;
        row.group = kOpen;
        row.family = family;
        row.cookie = Cookie{cookie};
        return row;
    }
    // Packets and octets that the flow of a's datagrams has counted.
    std::pair<std::uint64_t, std::uint64_t> counted(const Machine& from, const Machine& to) {
        const Tuple tuple{from.address, to.address, 17, 1025, 2000};
        const auto key = session::KeyIpv4::of(vni_of(from), tuple);
        const auto flow = sessions.ipv4.find(key, sessions.ipv4.hash(key));
        REQUIRE(flow != session::kNoFlow);
        const auto count = session::counted(sessions.ipv4.flow(flow).state,
                                            sessions.ipv4.connection(session::connection_of(flow)),
                                            session::is_reverse(flow));
        return {count.packets, count.octets};
    }

    Machine a, b, c;
};

}  // namespace sluice::tests
