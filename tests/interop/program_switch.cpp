// SPDX-License-Identifier: Apache-2.0
// The controller's southbound with a desired state of its own, for a switch that is not ours:
//   program_switch unix:SOCKET NAME
// It programs every table. Lines on its input: "change" publishes additions, removals and a
// meter; "bad" what no switch accepts, and other entries; "repair" takes the former back. Each
// event is a line of output.
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <cstdio>
#include <istream>

#include "controller/compiler/gateway_tables.hpp"
#include "controller/southbound/southbound.hpp"
#include "tests/interop/tables.hpp"

using namespace sluice;
using openflow::Changes;

namespace {

IpAddress v4(std::uint32_t address) {
    return IpAddress::v4(be32{address});
}
IpAddress v6(std::uint8_t last) {
    IpAddress result;
    result.bytes[0] = 0xfd;
    result.bytes[15] = last;
    return result;
}

// One endpoint of VPC 5 with everything that belongs to it, in both families.
void add_endpoint(Changes& changes, std::uint32_t number) {
    const VpcId vpc{5};
    const EndpointId endpoint{100 + number};
    const HostId host{1 + number % 4};
    const auto mac = MacAddress::from_value(0x020000000000 + number);
    const Cookie cookie{100 + number};
    for (const IpAddress& address :
         {v4(0x0a000000 + number), v6(static_cast<std::uint8_t>(number))}) {
        changes.put.push_back(
            nfv::SourceRow{vpc, mac, Prefix::host(address), endpoint, host, cookie}.encode());
        changes.put.push_back(openflow::EndpointRow{
            vpc, address, endpoint, SubnetId{6}, host, mac, {GroupId{8}, GroupId{9}}, cookie}
                                  .encode());
        for (const auto direction : {nfv::Direction::egress, nfv::Direction::ingress})
            changes.put.push_back(
                nfv::GroupAddressRow{direction, vpc, Prefix::host(address), GroupId{8}, cookie}
                    .encode());
    }
}

Changes first_state() {
    Changes changes;
    openflow::Settings settings;
    settings.put(openflow::Setting::connections, 1000).put(openflow::Setting::udp, 180);
    changes.put.push_back(openflow::VniRow{Vni{77}, VpcId{5}, Cookie{5}, settings}.encode());
    for (std::uint32_t host = 1; host <= 4; ++host)
        changes.put.push_back(openflow::HostRow{
            HostId{host},
            {v4(0xc0000200 + host), v6(200)},
            Cookie{host}}.encode());
    for (const IpAddress& address : {v4(0x0a000001), v6(1)})
        changes.put.push_back(nfv::LocalRow{
            VpcId{5}, address, MacAddress::from_value(0x0200000000ff), SubnetId{6}, 120,
            RouteTableId{7}, 1500,
            Cookie{6}}.encode());
    for (const Prefix& prefix :
         {Prefix::any(Family::ipv4), Prefix::any(Family::ipv6), Prefix{v4(0x0a000000), 120}})
        changes.put.push_back(openflow::RouteRow{
            RouteTableId{7},
            prefix,
            prefix.length > 100 ? openflow::NextHop::local : openflow::NextHop::internet,
            {},
            Cookie{7}}.encode());
    changes.put_meters = {{MeterId{21}, 20'000, 2'000}, {MeterId{22}, 20'000, 2'000}};
    changes.put.push_back(nfv::ElasticIpRow{
        VpcId{5}, v4(0x0a000002), v4(0xc6336402), MeterId{21},
        Cookie{20}}.encode());
    changes.put.push_back(nfv::PublicAddressRow{
        v4(0xc6336402), VpcId{5}, v4(0x0a000002), MeterId{22},
        Cookie{20}}.encode());
    for (std::uint32_t rule = 0; rule < 10; ++rule) {
        nfv::RuleRow row;
        row.direction = rule % 2 == 0 ? nfv::Direction::ingress : nfv::Direction::egress;
        row.group = GroupId{8};
        row.allow = rule % 3 != 0;
        row.priority = static_cast<std::uint16_t>(100 + rule);
        row.protocol = rule == 4 ? 1 : 6;
        if (rule == 4) row.icmp_type = 8;
        if (rule != 4) row.port_min = row.port_max = static_cast<std::uint16_t>(80 + rule);
        if (rule == 5) row.remote_prefix = Prefix{v4(0xc0a80000), 112};
        if (rule == 6) row.remote_group = GroupId{9};
        row.cookie = Cookie{300 + rule};
        changes.put.push_back(row.encode());
    }
    for (std::uint32_t number = 2; number < 52; ++number) add_endpoint(changes, number);
    return changes;
}

void say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

struct Program : southbound::Listener {
    Program(boost::asio::io_context& loop, southbound::Settings settings, std::string gateway)
        : name(std::move(gateway)),
          southbound(
              loop, std::move(settings),
              [this](const std::string& who) { return who == name ? &tables : nullptr; }, *this,
              [](const std::string& line) { say("log " + line); }) {}

    void on_confirmed(const std::string&, std::uint64_t revision) override {
        say("confirmed " + std::to_string(revision));
    }
    void on_error(const std::string&, std::uint64_t revision, const std::string& why) override {
        say("refused " + std::to_string(revision) + " " + why);
    }
    void on_withheld(const southbound::GatewayInfo& gateway) override {
        for (const auto& [cookie, why] : gateway.withheld)
            say("withheld " + std::to_string(cookie.value) + " " + why);
    }
    void on_gateway(const southbound::GatewayInfo& gateway) override {
        say(std::string(to_string(gateway.state)) + " put " + std::to_string(gateway.entries_put) +
            " removed " + std::to_string(gateway.entries_removed));
    }

    void step(const Changes& changes) {
        for (const openflow::EntryKey& key : changes.remove) tables.remove(key);
        for (const openflow::Entry& entry : changes.put) tables.put(entry);
        for (const MeterId id : changes.remove_meters) tables.remove(id);
        for (const openflow::Meter& meter : changes.put_meters) tables.put(meter);
        tables.set_revision(++last_revision);
        southbound.publish(name, last_revision, changes);
    }
    void obey(const std::string& command) {
        Changes changes;
        openflow::Entry bad = openflow::VniRow{Vni{78}, VpcId{6}, Cookie{6}}.encode();
        bad.next = 0;  // back to an earlier table
        if (command == "change") {
            add_endpoint(changes, 60);
            changes.remove.push_back(
                openflow::HostRow{HostId{4}, {v4(0xc0000204)}, Cookie{4}}.encode().key);
            changes.put_meters = {{MeterId{21}, 30'000, 3'000}, {MeterId{23}, 1'000, 100}};
        } else if (command == "bad") {  // in company
            changes.put.push_back(bad);
            add_endpoint(changes, 61);
        } else if (command == "repair") {
            changes.remove.push_back(bad.key);
        }
        step(changes);
    }

    std::string name;
    compiler::GatewayTables tables;
    std::uint64_t last_revision = 0;
    southbound::Southbound southbound;
};

}  // namespace

int main(int count, char** arguments) try {
    if (count != 3) {
        std::fputs("usage: program_switch unix:SOCKET NAME\n", stderr);
        return 2;
    }
    boost::asio::io_context loop;
    southbound::Settings settings;
    settings.listen = {arguments[1]};
    settings.retry = std::chrono::seconds(60);  // only the next change repairs
    Program program(loop, settings, arguments[2]);
    program.step(first_state());
    if (const auto started = program.southbound.start(); !started) {
        std::fprintf(stderr, "%s\n", started.error().message.c_str());
        return 2;
    }
    boost::asio::posix::stream_descriptor input(loop, ::dup(STDIN_FILENO));
    boost::asio::streambuf line;
    std::function<void()> read = [&] {
        boost::asio::async_read_until(input, line, '\n',
                                      [&](const boost::system::error_code& error, std::size_t) {
                                          if (error) return loop.stop();
                                          std::istream text(&line);
                                          std::string command;
                                          std::getline(text, command);
                                          program.obey(command);
                                          read();
                                      });
    };
    read();
    loop.run();
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
