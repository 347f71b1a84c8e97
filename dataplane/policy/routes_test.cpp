// SPDX-License-Identifier: Apache-2.0
#include "dataplane/policy/routes.hpp"

#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>
#include <map>

#include "tests/unit/arbitrary.hpp"

namespace sluice::policy {
namespace {

using openflow::RouteRow;

const RouteRow* by_scan(const std::vector<RouteRow>& rows, const IpAddress& address) {
    const RouteRow* best = nullptr;
    for (const RouteRow& row : rows)
        if (row.destination.contains(address) &&
            (best == nullptr || row.destination.length > best->destination.length))
            best = &row;
    return best;
}

// Few distinct bits, so that blocks nest.
rc::Gen<IpAddress> crowded(Family family) {
    return rc::gen::map(rc::gen::arbitrary<std::array<std::uint8_t, 2>>(), [family](auto bits) {
        if (family == Family::ipv4)
            return IpAddress::v4(be32{(bits[0] & 0x83U) << 24 | (bits[1] & 0xc1U)});
        IpAddress address{{0x20, 0x01}};
        address.bytes[7] = bits[0] & 0x83;
        address.bytes[15] = bits[1] & 0xc1;
        return address;
    });
}

TEST_CASE("the longest prefix that contains the address wins, as a linear scan says") {
    rc::prop("both families", [] {
        std::map<Prefix, RouteRow> unique;
        const auto count = *rc::gen::inRange(0, 40);
        for (int i = 0; i < count; ++i) {
            const auto family = *rc::family();
            const auto length = *rc::gen::inRange(family == Family::ipv4 ? 96 : 0, 129);
            const auto block =
                Prefix{*crowded(family), static_cast<std::uint8_t>(length)}.without_host_bits();
            if (family == Family::ipv6 && block.family() != family) continue;
            RouteRow row;
            row.destination = block;
            row.cookie = Cookie{static_cast<std::uint64_t>(i)};
            unique[block] = row;
        }
        std::vector<RouteRow> rows;
        for (const auto& [block, row] : unique) rows.push_back(row);
        const RouteTable table(rows);
        const auto check = [&](const IpAddress& address) {
            const RouteRow* wanted = by_scan(rows, address);
            const RouteRow* found = table.find(address);
            RC_ASSERT((wanted == nullptr) == (found == nullptr));
            if (wanted != nullptr) RC_ASSERT(found->cookie == wanted->cookie);
        };
        for (int i = 0; i < 50; ++i) check(*crowded(*rc::family()));
        for (const RouteRow& row : rows) {  // the edges of each block
            check(row.destination.address);
            IpAddress last = row.destination.address;
            for (std::size_t bit = row.destination.length; bit < 128; ++bit)
                last.bytes[bit / 8] |= static_cast<std::uint8_t>(0x80U >> (bit % 8));
            check(last);
        }
    });
}

TEST_CASE("an empty table has no route") {
    CHECK(RouteTable{}.find(IpAddress::v4(be32{1})) == nullptr);
    CHECK(RouteTable{}.find(IpAddress{{0x20, 0x01}}) == nullptr);
}

TEST_CASE("a default route of one family says nothing about the other") {
    RouteRow row;
    row.destination = Prefix::any(Family::ipv6);
    const RouteTable table({row});
    CHECK(table.find(IpAddress{{0x20, 0x01}}) != nullptr);
    CHECK(table.find(IpAddress::v4(be32{0x0a000001})) == nullptr);
}

}  // namespace
}  // namespace sluice::policy
