// SPDX-License-Identifier: Apache-2.0
// What a first packet's walk and a commit cost: walks a second by the number of rules in a
// group, and the time of one change beside 100,000 endpoints.
//
//   walk_bench [ENDPOINTS]     default 100000
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "dataplane/policy/store.hpp"
#include "dataplane/policy/walk.hpp"
#include "nfv/anti_spoof/function.hpp"
#include "nfv/anti_spoof/table.hpp"
#include "nfv/elastic_ip/function.hpp"
#include "nfv/elastic_ip/table.hpp"
#include "nfv/gateway_address/function.hpp"
#include "nfv/gateway_address/table.hpp"
#include "nfv/nat_gateway/function.hpp"
#include "nfv/policer/function.hpp"
#include "nfv/security_group/function.hpp"
#include "nfv/security_group/table.hpp"

namespace {

using namespace sluice;

// Of this thread alone, so that other programs disturb the caches but not the clock.
struct Clock {
    using time_point = double;
    static time_point now() {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    }
};

double seconds_since(Clock::time_point start) {
    return Clock::now() - start;
}

constexpr std::uint32_t kPerVpc = 100;  // endpoints
constexpr MacAddress kGatewayMac = MacAddress::from_value(0x0200000000fe);

IpAddress v4(std::uint32_t address) {
    return IpAddress::v4(be32{address});
}
IpAddress address_of(std::uint32_t endpoint) {
    return v4(0x0a000000 + 10 + endpoint % kPerVpc);
}
IpAddress public_of(std::uint32_t endpoint) {
    return v4(0xc6120000 + endpoint);
}
MacAddress mac_of(std::uint32_t endpoint) {
    return MacAddress::from_value(0x020000000000 + endpoint);
}
VpcId vpc_of(std::uint32_t endpoint) {
    return VpcId{1 + endpoint / kPerVpc};
}

// Endpoints in VPCs of 100, all with an elastic IP; one group a VPC.
class Cloud {
  public:
    explicit Cloud(std::uint32_t endpoints)
        : adjacencies(2 * endpoints + 16),
          sources(endpoints + 16),
          pipeline({&nfv::anti_spoof(), &nfv::gateway_address(), &nfv::security_group(),
                    &nfv::elastic_ip(), &nfv::nat_gateway(), &nfv::policer()}),
          outside{adjacencies.allocate(), adjacencies.allocate(), sources.allocate()},
          store({.adjacencies = adjacencies,
                 .sources = sources,
                 .qsbr = qsbr,
                 .pipeline = pipeline,
                 .outside = outside,
                 .ports = {}}) {
        openflow::Changes changes;
        changes.put.push_back(openflow::HostRow{HostId{1}, {v4(0xc0000201)}, {}}.encode());
        for (std::uint32_t i = 0; i < endpoints; ++i) {
            if (i % kPerVpc == 0) add_vpc(changes, vpc_of(i));
            add_endpoint(changes, i);
        }
        entries = changes.put.size();
        commit(changes);
    }

    void commit(const openflow::Changes& changes) {
        auto prepared = store.prepare(changes);
        if (!prepared) {
            std::fprintf(stderr, "%s: %s\n", prepared.error().path.c_str(),
                         prepared.error().message.c_str());
            std::quick_exit(1);
        }
        store.publish(*std::move(prepared), [](const policy::Delta&) {});
        store.reclaim();
    }

    static void add_vpc(openflow::Changes& changes, VpcId vpc) {
        const RouteTableId table{vpc.value};
        changes.put.push_back(openflow::VniRow{Vni{vpc.value}, vpc, {}}.encode());
        changes.put.push_back(nfv::LocalRow{
            vpc, v4(0x0a000001), kGatewayMac, SubnetId{vpc.value}, 112, table, 1450, {}}
                                  .encode());
        changes.put.push_back(
            openflow::RouteRow{table, {v4(0x0a000000), 104}, openflow::NextHop::local, {}, {}}
                .encode());
        changes.put.push_back(openflow::RouteRow{
            table, Prefix::any(Family::ipv4), openflow::NextHop::internet, {}, {}}
                                  .encode());
        for (const auto direction : {nfv::Direction::egress, nfv::Direction::ingress}) {
            nfv::RuleRow rule;
            rule.direction = direction;
            rule.group = GroupId{vpc.value};
            rule.priority = 32000;
            changes.put.push_back(rule.encode());
        }
    }
    static void add_endpoint(openflow::Changes& changes, std::uint32_t i) {
        const VpcId vpc = vpc_of(i);
        const EndpointId endpoint{i + 1};
        changes.put.push_back(openflow::EndpointRow{
            vpc,
            address_of(i),
            endpoint,
            SubnetId{vpc.value},
            HostId{1},
            mac_of(i),
            {GroupId{vpc.value}},
            {}}.encode());
        changes.put.push_back(
            nfv::SourceRow{vpc, mac_of(i), Prefix::host(address_of(i)), endpoint, HostId{1}, {}}
                .encode());
        changes.put.push_back(nfv::ElasticIpRow{vpc, address_of(i), public_of(i), {}, {}}.encode());
        changes.put.push_back(
            nfv::PublicAddressRow{public_of(i), vpc, address_of(i), {}, {}}.encode());
    }
    // Rules that do not match the packets walked here, before the one that does.
    void fill_group(std::uint32_t count) {
        openflow::Changes changes;
        for (const auto direction : {nfv::Direction::egress, nfv::Direction::ingress})
            for (std::uint32_t i = 0; i < count; ++i) {
                nfv::RuleRow rule;
                rule.direction = direction;
                rule.group = GroupId{1};
                rule.priority = static_cast<std::uint16_t>(1 + i);
                rule.protocol = 6;
                rule.port_min = rule.port_max = static_cast<std::uint16_t>(10000 + i);
                changes.put.push_back(rule.encode());
            }
        commit(changes);
    }

    reclaim::Qsbr qsbr{1};
    policy::AdjacencyTable adjacencies;
    policy::SourceTable sources;
    policy::Pipeline pipeline;
    policy::Outside outside;
    policy::Store store;
    std::size_t entries = 0;
};

Packet packet_of(std::uint32_t from, const IpAddress& destination) {
    Packet packet;
    packet.vni = Vni{vpc_of(from).value};
    packet.vtep = v4(0xc0000201);
    packet.source_mac = mac_of(from);
    packet.destination_mac = kGatewayMac;
    packet.tuple = {address_of(from), destination, 6, 40000, 80};
    return packet;
}

// The best of five, as the others met somebody else's work.
void measure_walks(const char* name, const Cloud& cloud, const std::vector<Packet>& packets) {
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
        const auto start = Clock::now();
        std::uint32_t forwarded = 0;
        constexpr std::uint32_t kWalks = 200000;
        for (std::uint32_t i = 0; i < kWalks; ++i)
            forwarded += policy::walk(cloud.store.current(), packets[i % packets.size()],
                                      policy::WalkMode::packet)
                             .verdict == policy::Verdict::forward;
        if (forwarded != kWalks) std::quick_exit(1);
        best = std::min(best, seconds_since(start) / kWalks);
    }
    std::printf("%-44s %7.0f ns  %5.2f million a second\n", name, best * 1e9, 1e-6 / best);
}

void measure_walks(Cloud& cloud, std::uint32_t endpoints) {
    std::vector<Packet> inside, outside, spread;
    for (std::uint32_t i = 0; i < kPerVpc; ++i) {
        inside.push_back(packet_of(i, address_of((i + 1) % kPerVpc)));
        outside.push_back(packet_of(i, v4(0x08080808)));
    }
    for (std::uint32_t i = 0; i < 50000; ++i)
        spread.push_back(packet_of((i * 7919U) % endpoints, v4(0x08080808)));
    measure_walks("same subnet, 1 rule", cloud, inside);
    measure_walks("to the internet by elastic IP, 1 rule", cloud, outside);
    measure_walks("the same, senders drawn from all VPCs", cloud, spread);
    std::uint32_t there = 0;
    for (const std::uint32_t rules : {1000U, 10000U}) {
        cloud.fill_group(rules);
        there = rules;
        const std::string count = std::to_string(there);
        measure_walks(("same subnet, " + count + " rules a direction").c_str(), cloud, inside);
        measure_walks(("by elastic IP, " + count + " rules").c_str(), cloud, outside);
    }
}

template <class Change>
void measure_commit(const char* name, Cloud& cloud, Change change) {
    std::vector<double> times;
    for (std::uint32_t i = 0; i < 200; ++i) {
        openflow::Changes changes;
        change(changes, i);
        const auto start = Clock::now();
        cloud.commit(changes);
        times.push_back(seconds_since(start));
    }
    std::sort(times.begin(), times.end());
    std::printf("%-44s p50 %6.1f us  p99 %6.1f us\n", name, times[100] * 1e6, times[198] * 1e6);
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint32_t endpoints =
        argc > 1 ? static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 10)) : 100000;
    auto start = Clock::now();
    Cloud cloud(endpoints);
    std::printf("%zu entries (%u endpoints) committed in one bundle in %.2f s\n", cloud.entries,
                endpoints, seconds_since(start));
    measure_commit("an endpoint comes or goes", cloud, [](openflow::Changes& changes, auto i) {
        Cloud::add_endpoint(changes, 7);
        if (i % 2 == 0) {
            for (const auto& entry : changes.put) changes.remove.push_back(entry.key);
            changes.put.clear();
        }
    });
    measure_commit("a rule, in a group of few", cloud, [](openflow::Changes& changes, auto i) {
        nfv::RuleRow rule;
        rule.group = GroupId{2};
        rule.cookie = Cookie{i + 1};
        changes.put.push_back(rule.encode());
    });
    measure_walks(cloud, endpoints);
    measure_commit("a rule, in a group of 10,000", cloud, [](openflow::Changes& changes, auto i) {
        nfv::RuleRow rule;
        rule.group = GroupId{1};
        rule.cookie = Cookie{i + 1};
        changes.put.push_back(rule.encode());
    });
}
