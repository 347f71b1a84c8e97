// SPDX-License-Identifier: Apache-2.0
// What a NAT gateway's filtering has let in to a mapped port, from outside or from another VPC
// (hairpin), lives as long as the endpoint's packets may leave through that NAT gateway, and no
// longer, whichever end sends next.
#include "tests/unit/worker_gateway.hpp"

namespace sluice::worker {
namespace {

using namespace tests;

// Endpoint a of VPC 1 behind NAT gateway 7, x of VPC 2 behind NAT gateway 8.
struct LetIn : Gateway {
    LetIn() {
        build_vpc(1);
        build_vpc(2);
        open_group();
        a = add_machine(5);
        x = add_machine(6, 1, {kOpen}, 2);
        put(route(1, 7), route(2, 8));
        put(gateway(7, seven), address_of(7, seven), gateway(8, eight), address_of(8, eight));
    }
    static openflow::RouteRow route(std::uint32_t table, std::uint32_t nat_gateway) {
        openflow::RouteRow row{RouteTableId{table},
                               Prefix::any(Family::ipv4),
                               openflow::NextHop::nat_gateway,
                               {},
                               Cookie{450}};
        row.nat_gateway = NatGatewayId{nat_gateway};
        return row;
    }
    static nfv::NatGatewayRow gateway(std::uint32_t number, const IpAddress& address) {
        nfv::NatGatewayRow row;
        row.nat_gateway = NatGatewayId{number};
        row.addresses = {address};
        row.filtering = nfv::NatFiltering::endpoint_independent;
        row.cookie = Cookie{900 + number};
        return row;
    }
    static nfv::PublicAddressRow address_of(std::uint32_t number, const IpAddress& address) {
        nfv::PublicAddressRow row{address, {}, {}, {}, Cookie{910 + number}};
        row.nat_gateway = NatGatewayId{number};
        return row;
    }
    static Layers udp(const IpAddress& source, std::uint16_t from, const IpAddress& destination,
                      std::uint16_t to) {
        return {Ipv4{.source = source,
                     .destination = destination,
                     .flags_and_offset = wire::ipv4::kDontFragment},
                Udp{.source = from, .destination = to}, Payload{filler(40)}};
    }
    static std::uint16_t source_port(const Bytes& frame) {
        return wire::load16(&frame[14 + 20]).host();
    }
    // The public port of the machine's port 4000.
    std::uint16_t mapped(const Machine& machine) {
        receive(kUnderlay, frame_of(machine, udp(machine.address, 4000, server, 53)));
        return source_port(uplinked());
    }

    struct Ends {
        std::function<void()> forth, back;  // a packet of each
    };
    // Somebody on the internet talks to a's port.
    Ends outside() {
        const std::uint16_t port = mapped(a);
        receive(kUplink, from_internet(udp(stranger, 99, seven, port)));
        CHECK(inner().size() > 14);
        receive(kUnderlay, frame_of(a, udp(a.address, 4000, stranger, 99)));
        CHECK(source_port(uplinked()) == port);
        return {[=, this] { receive(kUplink, from_internet(udp(stranger, 99, seven, port))); },
                [=, this] { receive(kUnderlay, frame_of(a, udp(a.address, 4000, stranger, 99))); }};
    }
    // x does, through its own NAT gateway.
    Ends hairpin() {
        const std::uint16_t port = mapped(a);
        receive(kUnderlay, frame_of(x, udp(x.address, 5000, seven, port)));
        const auto there = tunnelled();
        CHECK(there.vni == vni_of(a));
        const std::uint16_t of_x = source_port(there.frame);
        receive(kUnderlay, frame_of(a, udp(a.address, 4000, eight, of_x)));
        CHECK(tunnelled().vni == vni_of(x));
        return {[=, this] { receive(kUnderlay, frame_of(x, udp(x.address, 5000, seven, port))); },
                [=, this] { receive(kUnderlay, frame_of(a, udp(a.address, 4000, eight, of_x))); }};
    }
    // Nothing of the connection is carried any more, from either end. What is told to a sender is
    // no datagram; what x sends to an address that is nobody's here leaves as its own.
    void check_ended(const std::function<void()>& first, const std::function<void()>& second) {
        constexpr std::uint8_t kUdp = 17;
        constexpr std::size_t kSource = 14 + wire::ipv4::kSource;
        for (const auto& packet : {first, second}) {
            packet();
            for (const Bytes& frame : sent(kUnderlay))
                CHECK(taken_apart(frame).frame[14 + wire::ipv4::kProtocol] != kUdp);
            for (const Bytes& frame : sent(kUplink)) CHECK(wire::load_v4(&frame[kSource]) == eight);
        }
        unsigned ended = 0;
        ConnectionEvent event;
        while (worker->events().pop(event))
            if (event.kind == ConnectionEvent::Kind::ended && event.destination == a.id) ++ended;
        CHECK(ended == 1);
    }
    // ... for each kind of connection, and each end first.
    static void check(const std::function<void(LetIn&)>& change) {
        for (const bool hairpins : {false, true})
            for (const bool back_first : {false, true}) {
                INFO((hairpins ? "hairpin" : "outside") << (back_first ? ", back" : ", forth"));
                LetIn cloud;
                const Ends ends = hairpins ? cloud.hairpin() : cloud.outside();
                change(cloud);
                if (back_first)
                    cloud.check_ended(ends.back, ends.forth);
                else
                    cloud.check_ended(ends.forth, ends.back);
            }
    }

    const IpAddress seven = ip("203.0.113.7"), eight = ip("203.0.113.8");
    const IpAddress server = ip("198.51.100.1"), stranger = ip("198.51.100.2");
    Machine a, x;
};

}  // namespace

TEST_CASE("what was let in ends with the route to the NAT gateway") {
    LetIn::check([](LetIn& cloud) { cloud.remove(LetIn::route(1, 7)); });
}

TEST_CASE("what was let in ends with the route, also where another subnet's table keeps one") {
    LetIn::check([](LetIn& cloud) {
        cloud.put(LetIn::route(9, 7));
        cloud.remove(LetIn::route(1, 7));
    });
}

TEST_CASE("what was let in ends when the route to its sender leads elsewhere") {
    LetIn::check([](LetIn& cloud) {
        for (const char* away : {"198.51.100.0/24", "203.0.113.8/32"})
            cloud.put(openflow::RouteRow{
                RouteTableId{1}, block(away), openflow::NextHop::blackhole, {}, Cookie{460}});
    });
}

TEST_CASE("what was let in ends with the NAT gateway") {
    LetIn::check([](LetIn& cloud) {
        cloud.remove(LetIn::route(1, 7), LetIn::gateway(7, cloud.seven),
                     LetIn::address_of(7, cloud.seven));
    });
    LetIn::check([](LetIn& cloud) {
        cloud.remove(LetIn::route(1, 7));
        cloud.remove(LetIn::gateway(7, cloud.seven));
        cloud.remove(LetIn::address_of(7, cloud.seven));
    });
    LetIn::check([](LetIn& cloud) { cloud.remove(LetIn::gateway(7, cloud.seven)); });
}

TEST_CASE("what was let in ends when the address becomes another VPC's NAT gateway's") {
    LetIn::check([](LetIn& cloud) {
        auto moved = LetIn::gateway(8, cloud.eight);
        moved.addresses.push_back(cloud.seven);
        cloud.put(moved, LetIn::address_of(8, cloud.seven));
    });
    // In two steps, the route first.
    LetIn::check([](LetIn& cloud) {
        cloud.remove(LetIn::route(1, 7));
        auto moved = LetIn::gateway(8, cloud.eight);
        moved.addresses.push_back(cloud.seven);
        cloud.put(moved, LetIn::address_of(8, cloud.seven));
    });
}

TEST_CASE("what was let in ends when the address becomes an endpoint's own") {
    LetIn::check([](LetIn& cloud) {
        cloud.remove(LetIn::address_of(7, cloud.seven));
        cloud.put(
            nfv::ElasticIpRow{cloud.x.vpc, ip("10.0.1.77"), cloud.seven, {}, Cookie{700}},
            nfv::PublicAddressRow{cloud.seven, cloud.x.vpc, ip("10.0.1.77"), {}, Cookie{701}});
    });
}

TEST_CASE_METHOD(LetIn, "nothing is let in to a port whose endpoint has no route there any more") {
    const std::uint16_t port = mapped(a);
    remove(route(1, 7));
    check_dropped(kUplink, from_internet(udp(stranger, 99, seven, port)), DropReason::nat_unmapped);
    check_dropped(kUnderlay, frame_of(x, udp(x.address, 5000, seven, port)),
                  DropReason::nat_unmapped);
}

}  // namespace sluice::worker
