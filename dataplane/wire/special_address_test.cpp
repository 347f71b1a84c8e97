// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/special_address.hpp"

#include <catch2/catch.hpp>

#include "dataplane/wire/builder.hpp"

namespace sluice::wire {
namespace {

TEST_CASE("the internet ends where the registries of RFC 6890 say so") {
    // The first and last address of each block, and their neighbours outside of it.
    struct Block {
        const char *before, *first, *last, *after;
    };
    for (const Block& block : std::initializer_list<Block>{
             {nullptr, "0.0.0.0", "0.255.255.255", "1.0.0.0"},
             {"9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"},
             {"100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"},
             {"126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"},
             {"169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"},
             {"172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"},
             {"191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"},
             {"192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"},
             {"198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"},
             {nullptr, "240.0.0.0", "255.255.255.255", nullptr},
             {nullptr, "::", "::1", "0:0:0:1::"},
             {"64:ff9b:0:ffff::", "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
              "64:ff9b:2::"},
             {"ff:ffff::", "100::", "100::ffff:ffff:ffff:ffff", "100:0:0:1::"},
             {"2000:ffff::", "2001::", "2001:1ff:ffff::", "2001:200::"},
             {"5eff::", "5f00::", "5f00:ffff::", "5f01::"},
             {"fbff::", "fc00::", "fdff:ffff::", "fe00::"},
             {"fe7f::", "fe80::", "feff::", nullptr}}) {
        INFO(block.first);
        CHECK_FALSE(is_internet(*parse_ip(block.first)));
        CHECK_FALSE(is_internet(*parse_ip(block.last)));
        if (block.before != nullptr) CHECK(is_internet(*parse_ip(block.before)));
        if (block.after != nullptr) CHECK(is_internet(*parse_ip(block.after)));
    }
}

TEST_CASE("what of a special block everybody reaches, and documentation, is the internet") {
    for (const char* text :
         {"192.0.0.9", "192.0.0.10", "2001:1::1", "2001:3::1", "2001:4:112::1", "2001:20::1",
          "2001:30::1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1",
          "2002::1", "64:ff9b::1", "8.8.8.8", "2606:4700::1"}) {
        INFO(text);
        CHECK(is_internet(*parse_ip(text)));
    }
}

}  // namespace
}  // namespace sluice::wire
