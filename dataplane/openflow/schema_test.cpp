// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/schema.hpp"

#include <catch2/catch.hpp>

#include "dataplane/openflow/row.hpp"
#include "dataplane/openflow/tables.hpp"

namespace sluice::openflow {
namespace {

// A table that has one of everything.
constexpr FieldSpec kMatch[] = {{Field::ether_type, MatchKind::exact, true, ""},
                                {Field::source_ip, MatchKind::exact, false, ""},
                                {Field::destination_ip, MatchKind::prefix, false, ""},
                                {Field::ip_protocol, MatchKind::exact, false, ""},
                                {Field::icmp_type, MatchKind::exact, false, ""},
                                {Field::group, MatchKind::member, true, ""},
                                {Field::destination_ports, MatchKind::range, false, ""}};
constexpr SetSpec kSet[] = {{Field::host, true, false, ""},
                            {Field::group, false, true, ""},
                            {Field::destination_ip, false, false, ""}};
constexpr std::uint8_t kNext[] = {9};
constexpr TableSchema kTable = {.id = 4,
                                .name = "example",
                                .owner = "test",
                                .purpose = "",
                                .match = kMatch,
                                .set = kSet,
                                .next = kNext,
                                .next_required = true,
                                .has_priority = false,
                                .has_meter = false,
                                .built_in = false,
                                .capacity = 10};

EntryBuilder valid() {
    EntryBuilder builder(4, Cookie{1});
    builder.match(Field::group, GroupId{5}).set(Field::host, HostId{3}).next(9);
    return builder;
}

IpAddress v4(std::uint32_t address) {
    return IpAddress::v4(be32{address});
}

Violation violation(const Entry& entry) {
    const auto problem = check(kTable, entry);
    REQUIRE(problem);
    CHECK_FALSE(problem->error.message.empty());
    CHECK(validate(kTable, entry).error().path == problem->error.path);
    return problem->violation;
}

TEST_CASE("an entry that says what the table can hold is accepted") {
    CHECK_FALSE(check(kTable, valid().family(Family::ipv4).build()));
    CHECK_FALSE(check(kTable, valid()
                                  .match(Field::destination_ip, Prefix{v4(0x0a000000), 104})
                                  .match(Field::ip_protocol, 6)
                                  .match(Field::destination_ports, 443U << 16 | 80)
                                  .build()));
    CHECK(validate(kTable, valid().family(Family::ipv6).build()).ok());
}

TEST_CASE("an entry of another table is refused") {
    auto entry = valid().family(Family::ipv4).build();
    entry.key.table = 5;
    CHECK(violation(entry) == Violation::wrong_table);
}

TEST_CASE("a field that the table does not match is refused") {
    CHECK(violation(valid().family(Family::ipv4).match(Field::in_port, 1).build()) ==
          Violation::match_unknown);
}

TEST_CASE("a field twice is refused") {
    CHECK(violation(valid().family(Family::ipv4).match(Field::group, GroupId{6}).build()) ==
          Violation::match_duplicate);
}

TEST_CASE("a mask on an exact field is refused, and a prefix with holes") {
    auto entry = valid().match(Field::destination_ip, Prefix{v4(0x0a000000), 104}).build();
    auto& prefix = entry.key.match[1];
    REQUIRE(prefix.field == Field::destination_ip);
    prefix.mask.low ^= 1ULL << 28;
    CHECK(violation(entry) == Violation::match_mask);

    entry = valid().match(Field::source_ip, Prefix{v4(0x0a000000), 104}).build();
    CHECK(violation(entry) == Violation::match_mask);
}

TEST_CASE("a mask of length zero is refused: such a block is the field's absence") {
    auto entry = valid().match(Field::destination_ip, Prefix{v4(0), 97}).build();
    CHECK_FALSE(check(kTable, entry));
    entry.key.match[1].mask = U128::prefix_mask(96);
    CHECK(violation(entry) == Violation::match_mask);
}

TEST_CASE("bits outside of the mask are refused") {
    auto entry = valid().match(Field::destination_ip, Prefix{v4(0x0a000001), 104}).build();
    CHECK(violation(entry) == Violation::match_value);
}

TEST_CASE("a value that means nothing is refused") {
    CHECK(violation(valid().match(Field::ether_type, 0x0806).build()) == Violation::match_value);
    CHECK(violation(valid().family(Family::ipv4).match(Field::ip_protocol, 256).build()) ==
          Violation::match_value);
    CHECK(violation(valid()
                        .family(Family::ipv4)
                        .match(Field::ip_protocol, 6)
                        .match(Field::destination_ports, 80U << 16 | 443)
                        .build()) == Violation::match_value);
}

TEST_CASE("a range of all ports is refused: it is the field's absence") {
    CHECK(violation(valid()
                        .family(Family::ipv4)
                        .match(Field::ip_protocol, 6)
                        .match(Field::destination_ports, 0xffff0000)
                        .build()) == Violation::match_value);
}

TEST_CASE("an address needs the ether type of its family") {
    auto entry = valid().match(Field::destination_ip, v4(0x0a000001)).build();
    entry.key.match[0].value = U128::of(kEtherTypeIpv6);
    CHECK(violation(entry) == Violation::match_prerequisite);
}

TEST_CASE("an ICMP type needs the ICMP of the family") {
    CHECK_FALSE(check(kTable, valid()
                                  .family(Family::ipv4)
                                  .match(Field::ip_protocol, 1)
                                  .match(Field::icmp_type, 8)
                                  .build()));
    CHECK_FALSE(check(kTable, valid()
                                  .family(Family::ipv6)
                                  .match(Field::ip_protocol, 58)
                                  .match(Field::icmp_type, 128)
                                  .build()));
    CHECK(violation(valid()
                        .family(Family::ipv6)
                        .match(Field::ip_protocol, 1)
                        .match(Field::icmp_type, 8)
                        .build()) == Violation::match_prerequisite);
}

TEST_CASE("ports need a protocol that has ports") {
    CHECK(violation(valid()
                        .family(Family::ipv4)
                        .match(Field::ip_protocol, 47)
                        .match(Field::destination_ports, 443U << 16 | 80)
                        .build()) == Violation::match_prerequisite);
}

TEST_CASE("a required match may not be absent") {
    CHECK(violation(valid().build()) == Violation::match_missing);
}

TEST_CASE("an entry goes on only to where the table leads") {
    CHECK(violation(valid().family(Family::ipv4).next(8).build()) == Violation::next_table);
    auto entry = valid().family(Family::ipv4).build();
    entry.next.reset();
    CHECK(violation(entry) == Violation::next_missing);
}

TEST_CASE("a meter is refused in a table without meters") {
    CHECK(violation(valid().family(Family::ipv4).meter(MeterId{1}).build()) ==
          Violation::meter_unknown);
}

TEST_CASE("a repeated set names each member once, any other set occurs once") {
    CHECK_FALSE(check(kTable, valid()
                                  .family(Family::ipv4)
                                  .set(Field::group, GroupId{1})
                                  .set(Field::group, GroupId{2})
                                  .build()));
    CHECK(violation(valid()
                        .family(Family::ipv4)
                        .set(Field::group, GroupId{1})
                        .set(Field::group, GroupId{1})
                        .build()) == Violation::set_duplicate);
    CHECK(violation(valid().family(Family::ipv4).set(Field::host, HostId{4}).build()) ==
          Violation::set_duplicate);
}

TEST_CASE("what is set must be known, present and within its range") {
    CHECK(violation(valid().family(Family::ipv4).set(Field::mtu, 1500).build()) ==
          Violation::set_unknown);
    auto entry = valid().family(Family::ipv4).build();
    entry.set[0].value = U128::of(1ULL << 32);
    CHECK(violation(entry) == Violation::set_value);
    entry.set.clear();
    CHECK(violation(entry) == Violation::set_missing);
}

TEST_CASE("an address that is set is of the family that is matched") {
    CHECK_FALSE(
        check(kTable, valid().family(Family::ipv4).set(Field::destination_ip, v4(1)).build()));
    CHECK(violation(valid().family(Family::ipv6).set(Field::destination_ip, v4(1)).build()) ==
          Violation::set_value);
}

TEST_CASE("a priority is refused in a table without priorities") {
    CHECK(violation(valid().family(Family::ipv4).priority(1).build()) == Violation::priority);
}

TEST_CASE("every field has a name and a width") {
    for (unsigned i = 0; i < static_cast<unsigned>(Field::count); ++i) {
        CHECK_FALSE(field_name(static_cast<Field>(i)).empty());
        CHECK(field_bits(static_cast<Field>(i)) > 0);
    }
    CHECK(field_name(Field::side) == "side");
    CHECK(field_bits(Field::tunnel_id) == 24);
}

}  // namespace
}  // namespace sluice::openflow
