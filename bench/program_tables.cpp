// SPDX-License-Identifier: Apache-2.0
// Programs a gateway with a benchmark's network: reads its description (of scenario.py, or of
// sluice-pktgen --network) from standard input, turns it into table entries and sends them as one
// OpenFlow bundle.
//
// usage: program_tables SOCKET < network.json
// Returns once every worker of the gateway acts on the tables.
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/json.hpp>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "dataplane/openflow/codec.hpp"
#include "nfv/anti_spoof/table.hpp"
#include "nfv/elastic_ip/table.hpp"
#include "nfv/gateway_address/table.hpp"
#include "nfv/security_group/table.hpp"

namespace {

using namespace sluice;
namespace json = boost::json;

std::uint32_t number(const json::value& object, const char* name) {
    return object.at(name).to_number<std::uint32_t>();
}

IpAddress address(const json::value& object, const char* name) {
    const auto parsed = parse_ip(object.at(name).as_string());
    if (!parsed) throw std::invalid_argument(std::string(name) + " is no address");
    return *parsed;
}

Prefix prefix(const json::value& object, const char* name) {
    const auto parsed = parse_prefix(object.at(name).as_string());
    if (!parsed) throw std::invalid_argument(std::string(name) + " is no prefix");
    return *parsed;
}

MacAddress mac(const json::value& object) {
    const auto parsed = parse_mac(object.at("mac").as_string());
    if (!parsed) throw std::invalid_argument("mac is no MAC address");
    return *parsed;
}

// The entries of a network, each with a cookie of its own.
class Tables {
  public:
    explicit Tables(const json::value& network) {
        for (const auto& vpc : network.at("vpcs").as_array()) add_vpc(vpc);
        for (const auto& host : network.at("hosts").as_array())
            add(openflow::HostRow{HostId{number(host, "id")}, {address(host, "vtep")}, cookie()});
        for (const auto& subnet : network.at("subnets").as_array()) add_subnet(subnet);
        for (const auto& group : network.at("groups").as_array())
            for (const auto& rule : group.at("rules").as_array())
                add_rule(GroupId{number(group, "id")}, rule);
        for (const auto& endpoint : network.at("endpoints").as_array()) add_endpoint(endpoint);
    }
    [[nodiscard]] openflow::Changes take() { return std::move(changes_); }

  private:
    template <class Row>
    void add(const Row& row) {
        changes_.put.push_back(row.encode());
    }
    Cookie cookie() { return Cookie{++last_cookie_}; }

    void add_vpc(const json::value& vpc) {
        const VpcId id{number(vpc, "id")};
        add(openflow::VniRow{Vni{number(vpc, "vni")}, id, cookie()});
        // A route table per VPC, numbered as the VPC: everything unknown is the internet's.
        add(openflow::RouteRow{RouteTableId{id.value}, Prefix::any(Family::ipv4),
                               openflow::NextHop::internet, EndpointId{}, cookie()});
    }

    void add_subnet(const json::value& subnet) {
        const VpcId vpc{number(subnet, "vpc")};
        const Prefix cidr = prefix(subnet, "cidr");
        add(openflow::RouteRow{RouteTableId{vpc.value}, cidr, openflow::NextHop::local,
                               EndpointId{}, cookie()});
        const auto mtu = subnet.as_object().contains("mtu") ? number(subnet, "mtu") : 1500;
        add(nfv::LocalRow{vpc, address(subnet, "gateway"), mac(subnet),
                          SubnetId{number(subnet, "id")}, cidr.length, RouteTableId{vpc.value},
                          static_cast<std::uint16_t>(mtu), cookie()});
    }

    void add_rule(GroupId group, const json::value& rule) {
        nfv::RuleRow row;
        row.direction = rule.at("direction").as_string() == "egress" ? nfv::Direction::egress
                                                                     : nfv::Direction::ingress;
        row.group = group;
        row.protocol = static_cast<std::uint8_t>(number(rule, "protocol"));
        row.port_min = rule.at("ports").at(0).to_number<std::uint16_t>();
        row.port_max = rule.at("ports").at(1).to_number<std::uint16_t>();
        if (rule.as_object().contains("remote")) {
            row.remote_prefix = prefix(rule, "remote");
            row.family = row.remote_prefix->family();
        }
        row.cookie = cookie();
        add(row);
    }

    void add_endpoint(const json::value& endpoint) {
        const VpcId vpc{number(endpoint, "vpc")};
        const EndpointId id{number(endpoint, "id")};
        const HostId host{number(endpoint, "host")};
        const IpAddress own = address(endpoint, "address");
        add(nfv::SourceRow{vpc, mac(endpoint), Prefix::host(own), id, host, cookie()});
        add(openflow::EndpointRow{vpc,
                                  own,
                                  id,
                                  SubnetId{number(endpoint, "subnet")},
                                  host,
                                  mac(endpoint),
                                  {GroupId{number(endpoint, "group")}},
                                  cookie()});
        if (!endpoint.as_object().contains("elastic")) return;
        const IpAddress elastic = address(endpoint, "elastic");
        add(nfv::ElasticIpRow{vpc, own, elastic, MeterId{}, cookie()});
        add(nfv::PublicAddressRow{elastic, vpc, own, MeterId{}, cookie()});
    }

    openflow::Changes changes_;
    std::uint64_t last_cookie_ = 0;
};

// A connection that waits for each answer: nothing else happens meanwhile.
class Switch {
  public:
    explicit Switch(const std::string& path) : socket_(context_) {
        socket_.connect(path);
        openflow::Bytes out;
        openflow::append_hello(out, kXid);
        boost::asio::write(socket_, boost::asio::buffer(out));
    }

    // One bundle; returns when it is committed.
    void apply(const openflow::Changes& changes) {
        constexpr std::uint32_t kBundle = 1;
        const auto control = [](openflow::BundleType type) {
            return openflow::BundleControl{kBundle, type,
                                           openflow::kBundleAtomic | openflow::kBundleOrdered};
        };
        openflow::Bytes out;
        openflow::append_bundle_control(out, kXid, control(openflow::BundleType::open_request));
        for (const auto& entry : changes.put) {
            openflow::FlowMod mod;
            mod.entry = entry;
            openflow::append_bundled(out, kXid, kBundle, mod);
        }
        openflow::append_bundle_control(out, kXid, control(openflow::BundleType::commit_request));
        boost::asio::write(socket_, boost::asio::buffer(out));
        while (!committed(receive())) continue;
    }

  private:
    static constexpr openflow::Xid kXid{1};

    openflow::Bytes receive() {
        openflow::Bytes message(8);
        boost::asio::read(socket_, boost::asio::buffer(message));
        message.resize(std::max<std::size_t>(8, openflow::header(message).length));
        boost::asio::read(socket_, boost::asio::buffer(message.data() + 8, message.size() - 8));
        return message;
    }

    static bool committed(const openflow::Bytes& message) {
        const auto kind = openflow::classify(message);
        if (!kind) return false;
        if (*kind == openflow::Kind::error) {
            const auto error = openflow::decode_error(message);
            throw std::runtime_error("the gateway refused: " +
                                     (error ? error->text : std::string("an error")));
        }
        if (*kind != openflow::Kind::bundle_control) return false;
        const auto control = openflow::decode_bundle_control(message);
        return control && control->type == openflow::BundleType::commit_reply;
    }

    boost::asio::io_context context_;
    boost::asio::local::stream_protocol::socket socket_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("usage: program_tables SOCKET < network.json\n", stderr);
        return 2;
    }
    try {
        const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
        Tables tables(json::parse(text));
        Switch(argv[1]).apply(tables.take());
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "program_tables: %s\n", problem.what());
        return 1;
    }
    return 0;
}
