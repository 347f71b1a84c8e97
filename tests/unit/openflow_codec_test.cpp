// SPDX-License-Identifier: Apache-2.0
// Entries of every table through OpenFlow's messages and back.
#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>

#include "dataplane/openflow/controller_codec.hpp"
#include "dataplane/openflow/switch_codec.hpp"
#include "tests/interop/tables.hpp"
#include "tests/unit/arbitrary.hpp"

namespace sluice::openflow {
namespace {

U128 any_value(Field field, Family family) {
    switch (field) {
        case Field::ether_type:
            return U128::of(family == Family::ipv4 ? 0x0800 : 0x86dd);
        case Field::in_port:
            return U128::of(*rc::gen::inRange<std::uint64_t>(1, 0xff00));
        case Field::source_mac:
        case Field::destination_mac:
            return U128::of((*rc::gen::arbitrary<MacAddress>()).value());
        case Field::source_ip:
        case Field::destination_ip:
            return U128::of(*rc::ip_address(family));
        case Field::icmp_type:
        case Field::icmp_code:
            return U128::of(*rc::gen::arbitrary<std::uint8_t>());
        case Field::address:
            return U128::of(*rc::gen::arbitrary<IpAddress>());
        case Field::side:
            return U128::of(*rc::gen::inRange<std::uint64_t>(0, 2));
        case Field::next_hop:
            return U128::of(*rc::gen::inRange<std::uint64_t>(1, 6));
        case Field::mtu:
            return U128::of(*rc::gen::inRange<std::uint64_t>(96, 129) << 16 | 1500);
        default:
            return U128::of(*rc::gen::inRange<std::uint64_t>(1, 1U << 24));
    }
}

// A valid entry of the table, or one that the property discards.
Entry any_entry(const TableSchema& schema) {
    Entry entry;
    entry.key.table = schema.id;
    entry.cookie = *rc::gen::arbitrary<Cookie>();
    const Family family = *rc::family();
    // What the packet's protocol lets an entry say.
    const std::uint64_t icmp = family == Family::ipv4 ? 1 : 58;
    const auto protocol = *rc::gen::element<std::uint64_t>(0, 6, 17, icmp);
    for (const FieldSpec& spec : schema.match) {
        const bool of_icmp = spec.field == Field::icmp_type || spec.field == Field::icmp_code;
        const bool of_ports = spec.field == Field::destination_ports;
        if (spec.field == Field::ip_protocol) {
            if (protocol != 0)
                entry.key.match.push_back({spec.field, U128::of(protocol), U128::ones()});
            continue;
        }
        if ((of_icmp && protocol != icmp) || (of_ports && protocol != 6 && protocol != 17))
            continue;
        if (!spec.required && *rc::gen::arbitrary<bool>()) continue;
        MatchField field{spec.field, any_value(spec.field, family), U128::ones()};
        if (spec.kind == MatchKind::prefix || spec.kind == MatchKind::union_prefix) {
            const Prefix prefix = *rc::prefix(family);
            if (prefix.family_length() == 0) continue;
            field.value = U128::of(prefix.address);
            field.mask = U128::prefix_mask(prefix.length);
        }
        if (spec.kind == MatchKind::range) {
            const auto first = *rc::gen::inRange<std::uint64_t>(0, 65536);
            field.value = U128::of(*rc::gen::inRange<std::uint64_t>(first, 65536) << 16 | first);
        }
        entry.key.match.push_back(field);
    }
    std::sort(entry.key.match.begin(), entry.key.match.end());
    for (const SettingSpec& setting : settings())
        if ((setting.tables >> schema.id & 1) != 0 && *rc::gen::arbitrary<bool>()) {
            const auto value = *rc::gen::inRange(setting.minimum, setting.maximum + 1);
            entry.set.push_back({Field::setting, U128::of(pack_setting({setting.id, value}))});
        }
    for (const SetSpec& spec : schema.set) {
        if (spec.field == Field::setting) continue;
        for (int copies = spec.repeated ? *rc::gen::inRange(1, 4) : 1; copies > 0; --copies)
            entry.set.push_back({spec.field, any_value(spec.field, family)});
    }
    if (schema.has_meter) entry.meter = MeterId{*rc::gen::inRange(0U, 1U << 20)};
    if (schema.has_priority) entry.key.priority = *rc::gen::arbitrary<std::uint16_t>();
    if (!schema.next.empty())
        entry.next = schema.next[*rc::gen::inRange<std::size_t>(0, schema.next.size())];
    RC_PRE(validate(schema, entry).ok());
    return entry;
}

FlowMod adding(const Entry& entry) {
    FlowMod mod;
    mod.entry = entry;
    return mod;
}

}  // namespace

TEST_CASE("an entry of any table survives a FLOW_MOD, alone and in a bundle") {
    for (const TableSchema* schema : interop::all_tables()) {
        rc::prop(std::string(schema->name), [schema](std::uint32_t bundle) {
            const Entry entry = any_entry(*schema);
            Bytes message;
            append_flow_mod(message, Xid{7}, adding(entry));
            RC_ASSERT(*classify(message) == Kind::flow_mod);
            const auto alone = decode_flow_mod(message);
            RC_ASSERT(alone.ok());
            RC_ASSERT(alone->entry == entry);
            message.clear();
            append_bundled(message, Xid{8}, bundle, adding(entry));
            RC_ASSERT(*classify(message) == Kind::bundle_add);
            const auto wrapped = decode_bundle_add(message);
            RC_ASSERT(wrapped.ok());
            RC_ASSERT(wrapped->bundle == bundle);
            RC_ASSERT(decode_flow_mod(wrapped->inner)->entry == entry);
        });
    }
}

TEST_CASE("the key of an entry survives a strict remove, with its cookie mask") {
    for (const TableSchema* schema : interop::all_tables()) {
        rc::prop(std::string(schema->name), [schema](std::uint64_t cookie, std::uint64_t mask) {
            FlowMod mod;
            mod.command = ModCommand::remove_strict;
            mod.entry.key = any_entry(*schema).key;
            mod.cookie = cookie;
            mod.cookie_mask = mask;
            Bytes message;
            append_flow_mod(message, Xid{7}, mod);
            const auto decoded = decode_flow_mod(message);
            RC_ASSERT(decoded.ok());
            RC_ASSERT(decoded->command == ModCommand::remove_strict);
            RC_ASSERT(decoded->entry.key == mod.entry.key);
            RC_ASSERT(((decoded->cookie ^ cookie) & mask) == 0U);
            RC_ASSERT(decoded->cookie_mask == mask);
        });
    }
}

TEST_CASE("entries survive a dump in segments") {
    rc::prop("all tables", [] {
        std::vector<Entry> entries;
        for (const TableSchema* schema : interop::all_tables())
            entries.push_back(any_entry(*schema));
        while (entries.size() < 1500) entries.push_back(entries[entries.size() % 13]);
        Bytes request;
        append_flow_request(request, Xid{9}, kAllTables);
        RC_ASSERT(decode_flow_request(request)->match.empty());
        RecordWriter writer(request);
        for (const Entry& entry : entries) writer.append(entry, {});
        Bytes replies;
        writer.take(replies, false);
        std::vector<Entry> read;
        std::size_t segments = 0;
        for (std::size_t at = 0; at < replies.size(); ++segments) {
            const auto length = static_cast<std::size_t>(replies[at + 2]) << 8 | replies[at + 3];
            const Bytes one(replies.begin() + static_cast<std::ptrdiff_t>(at),
                            replies.begin() + static_cast<std::ptrdiff_t>(at + length));
            at += length;
            RC_ASSERT(has_more(one) == (at < replies.size()));
            const auto decoded = decode_flow_reply(one);
            RC_ASSERT(decoded.ok());
            RC_ASSERT(decoded->foreign == 0U);
            read.insert(read.end(), decoded->entries.begin(), decoded->entries.end());
        }
        RC_ASSERT(segments > 1U);
        RC_ASSERT(read == entries);
    });
}

TEST_CASE("a meter survives a METER_MOD and a dump") {
    rc::prop("meters", [](MeterId id, std::uint32_t burst) {
        const Meter meter{id, *rc::gen::inRange(1U, 0xffffffffU), burst};
        Bytes message;
        append_meter_mod(message, Xid{1}, {MeterCommand::modify, meter, false});
        const auto mod = decode_meter_mod(message);
        RC_ASSERT(mod.ok());
        RC_ASSERT(mod->meter == meter);
        Bytes request;
        append_meter_config_request(request, Xid{2});
        RecordWriter writer(request);
        writer.append_config(meter);
        Bytes reply;
        writer.take(reply, false);
        RC_ASSERT(decode_meter_config_reply(reply)->meters == std::vector<Meter>{meter});
    });
}

TEST_CASE("digests survive their multipart") {
    rc::prop("digests", [](std::vector<std::pair<std::uint8_t, std::uint64_t>> values) {
        std::vector<TableDigest> digests;
        for (const auto& [table, sum] : values)
            digests.push_back({table, static_cast<std::uint32_t>(sum >> 7), sum});
        Bytes request;
        append_query(request, Xid{3}, Query::digest, {});
        RC_ASSERT(decode_experimenter_request(request)->query == Query::digest);
        Bytes reply;
        append_digest_reply(reply, request, digests);
        RC_ASSERT(*decode_digests(decode_query_reply(reply)->text) == digests);
    });
}

TEST_CASE("errors carry their numbers, their name and the request's transaction id") {
    Bytes request;
    append_barrier_request(request, Xid{77});
    for (const auto& [code, name] : {std::pair{error::kTableFull, "OFPFMFC_TABLE_FULL"},
                                     std::pair{error::kBundleFailed, "OFPBFC_MSG_FAILED"},
                                     std::pair{error::kBadPriority, "OFPFMFC_BAD_PRIORITY"},
                                     std::pair{error::kHelloIncompatible, "OFPHFC_INCOMPATIBLE"}}) {
        Bytes message;
        append_error(message, code, request);
        const auto decoded = decode_error(message);
        REQUIRE(decoded.ok());
        CHECK(decoded->code == code);
        CHECK(decoded->text == name);
        CHECK(decoded->xid == Xid{77});
    }
    Bytes message;
    append_refusal(message, "there is no such VPC", request);
    CHECK(decode_error(message)->text == "there is no such VPC");
}

TEST_CASE("an entry's statistics: its age to the nanosecond, and what is not counted as all ones") {
    const auto number = [](const Bytes& from, std::size_t at, std::size_t octets) {
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < octets; ++i) value = value << 8 | from[at + i];
        return value;
    };
    Bytes request, reply;
    append_flow_request(request, Xid{5}, kVni);
    RecordWriter writer(request);
    EntryStats stats;
    stats.age = std::chrono::nanoseconds(90'000'000'007);
    writer.append(VniRow{Vni{1}, VpcId{1}, Cookie{1}}.encode(), stats);
    writer.take(reply, false);
    // Behind the multipart header's 16 octets: OpenFlow 1.3.5 section 7.3.5.2.
    CHECK(number(reply, 16 + 4, 4) == 90);
    CHECK(number(reply, 16 + 8, 4) == 7);
    CHECK(number(reply, 16 + 32, 8) == ~std::uint64_t{0});
    CHECK(number(reply, 16 + 40, 8) == ~std::uint64_t{0});

    // In every segment of a long reply.
    constexpr std::uint32_t kMany = 2000;
    RecordWriter many(request);
    for (std::uint32_t i = 1; i <= kMany; ++i)
        many.append(VniRow{Vni{i}, VpcId{i}, Cookie{i}}.encode(),
                    i % 2 == 0 ? stats : EntryStats{3, 4, {}});
    Bytes segments;
    many.take(segments, false);
    std::uint32_t counted = 0, not_counted = 0;
    for (std::size_t at = 0; at < segments.size(); at += number(segments, at + 2, 2)) {
        const std::size_t end = at + number(segments, at + 2, 2);
        for (std::size_t record = at + 16; record < end; record += number(segments, record, 2)) {
            counted +=
                number(segments, record + 32, 8) == 3 && number(segments, record + 40, 8) == 4;
            not_counted += number(segments, record + 32, 8) == ~std::uint64_t{0};
        }
    }
    CHECK(segments.size() > 0xffff);
    CHECK(counted == kMany / 2);
    CHECK(not_counted == kMany / 2);
}

TEST_CASE("an error says in words what is wrong, behind what it quotes of the request") {
    Bytes request, message;
    append_flow_mod(request, Xid{78}, adding(VniRow{Vni{1}, VpcId{1}, {}}.encode()));
    append_error(message, error::kBadMatchValue, request, "vni: taken");
    CHECK(message.size() == 12 + 64 + 10);
    CHECK(std::equal(request.begin(), request.begin() + 64, message.begin() + 12));
    CHECK(decode_error(message)->text == "vni: taken (OFPBMC_BAD_VALUE)");
    // Another switch may quote the whole request.
    Bytes foreign(message.begin(), message.begin() + 12);
    foreign.insert(foreign.end(), request.begin(), request.end());
    CHECK(decode_error(foreign)->text == "OFPBMC_BAD_VALUE");
}

TEST_CASE("the library's own refusals become OpenFlow's numbers") {
    silence_library();
    Bytes message;
    append_flow_mod(message, Xid{1}, adding(VniRow{Vni{1}, VpcId{1}, {}}.encode()));
    Bytes truncated(message.begin(), message.begin() + 40);
    truncated[3] = 40;
    CHECK(classify(truncated).error().code == error::kBadLength);
    Bytes version = message;
    version[0] = 5;
    CHECK(classify(version).error().code == error::kBadVersion);
    Bytes type = message;
    type[1] = 90;
    CHECK(classify(type).error().code == error::kBadType);
}

}  // namespace sluice::openflow
