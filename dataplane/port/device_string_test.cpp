// SPDX-License-Identifier: Apache-2.0
#include "dataplane/port/device_string.hpp"

#include <catch2/catch.hpp>

namespace sluice::port {
namespace {

std::string completed(std::string device, std::uint16_t mtu, std::size_t workers) {
    config::Port port;
    port.device = std::move(device);
    port.mtu = mtu;
    return with_defaults(port, workers);
}

}  // namespace

TEST_CASE("an AF_PACKET port gets frames of its MTU and a queue for each worker", "[port]") {
    CHECK(completed("net_af_packet0,iface=u0", 1600, 1) ==
          "net_af_packet0,iface=u0,blocksz=4096,framesz=2048,framecnt=4096");
    CHECK(completed("net_af_packet0,iface=u0", 9000, 2) ==
          "net_af_packet0,iface=u0,qpairs=2,blocksz=36864,framesz=9216,framecnt=4096");
}

TEST_CASE("what the operator wrote stays as it is", "[port]") {
    CHECK(completed("net_af_packet0,iface=u0,qpairs=4,framesz=4096", 1500, 2) ==
          "net_af_packet0,iface=u0,qpairs=4,framesz=4096");
    CHECK(completed("net_tap0,iface=t", 1500, 2) == "net_tap0,iface=t");
    CHECK(completed("0000:03:00.0", 1500, 2) == "0000:03:00.0");
}

TEST_CASE("the MTU of an interface is read, if there is one", "[port]") {
    CHECK(interface_mtu("lo") >= 1500U);
    CHECK_FALSE(interface_mtu("no_such_interface"));
}

}  // namespace sluice::port
