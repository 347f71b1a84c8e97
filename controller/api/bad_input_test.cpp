// SPDX-License-Identifier: Apache-2.0
// What bad input gets: a 4xx that names the field and why, and nothing changed.
#include "controller/api/fixture.hpp"

using namespace sluice::api;
using Pointers = std::vector<std::string>;

namespace {

// Everything the API shows, to see that nothing changed.
std::string everything(Fixture& f) {
    std::string all;
    for (const auto* kind : {"vpcs", "subnets", "hosts", "endpoints", "security-groups",
                             "prefix-lists", "external-pools", "elastic-ips", "route-tables"})
        all += f.get(std::string("/v1/") + kind).raw.body;
    return all;
}

struct Refusal {
    const char* what;
    const char* method;
    std::string target;
    std::string body;
    unsigned status;
    Pointers pointers;
};

void check_refused(Fixture& f, const Refusal& refusal) {
    INFO(refusal.what);
    const auto before = everything(f);
    const auto reply = f.call(refusal.method, refusal.target, refusal.body);
    INFO(reply.raw.body);
    CHECK(reply.status == refusal.status);
    CHECK(reply.pointers() == refusal.pointers);
    CHECK(reply.raw.content_type == "application/problem+json");
    CHECK(reply.text("/request_id").size() == 36);
    CHECK_FALSE(reply.text("/detail").empty());
    CHECK((everything(f) == before));
}

}  // namespace

TEST_CASE("what is wrong with a VPC or subnet is named, and nothing changes") {
    Fixture f;
    const Network n(f);
    const std::string subnet = R"({"vpc_id":")" + n.vpc + R"(",)";
    const std::string vni = f.get("/v1/vpcs/" + n.vpc).text("/vni");
    // clang-format off
    const Refusal refusals[] = {
        {"unknown field", "POST", "/v1/vpcs", R"({"cidrs":["10.9.0.0/16"],"colour":1})", 422, {"/colour"}},
        {"missing field", "POST", "/v1/vpcs", R"({})", 422, {"/cidrs"}},
        {"wrong type", "POST", "/v1/vpcs", R"({"cidrs":"10.9.0.0/16"})", 422, {"/cidrs"}},
        {"wrong type inside", "POST", "/v1/vpcs", R"({"cidrs":[7]})", 422, {"/cidrs/0"}},
        {"host bits", "POST", "/v1/vpcs", R"({"cidrs":["10.9.0.1/16"]})", 422, {"/cidrs/0"}},
        {"overlap in itself", "POST", "/v1/vpcs", R"({"cidrs":["10.9.0.0/16","10.9.1.0/24"]})", 422, {"/cidrs/1"}},
        {"loopback", "POST", "/v1/vpcs", R"({"cidrs":["127.0.0.0/16"]})", 422, {"/cidrs/0"}},
        {"VNI taken", "POST", "/v1/vpcs", R"({"cidrs":["10.9.0.0/16"],"vni":)" + vni + "}", 409, {"/vni"}},
        {"VNI out of range", "POST", "/v1/vpcs", R"({"cidrs":["10.9.0.0/16"],"vni":16777216})", 422, {"/vni"}},
        {"id taken", "POST", "/v1/vpcs", R"({"cidrs":["10.9.0.0/16"],"id":")" + n.vpc + "\"}", 409, {"/id"}},
        {"immutable", "PATCH", "/v1/vpcs/" + n.vpc, R"({"vni":77})", 422, {"/vni"}},
        {"read-only", "PATCH", "/v1/vpcs/" + n.vpc, R"({"version":77})", 422, {"/version"}},
        {"line break in the name", "PATCH", "/v1/vpcs/" + n.vpc, R"({"name":"a\nb"})", 422, {"/name"}},
        {"NUL in the name", "POST", "/v1/vpcs", R"({"cidrs":["10.9.0.0/16"],"name":"a\u0000"})", 422, {"/name"}},
        {"C1 control in the name", "POST", "/v1/vpcs", R"({"cidrs":["10.9.0.0/16"],"name":"\u009b2J"})", 422, {"/name"}},
        {"escape in the description", "PATCH", "/v1/vpcs/" + n.vpc, R"({"description":"\u001b[2J"})", 422, {"/description"}},
        {"control in a tag", "PATCH", "/v1/vpcs/" + n.vpc, R"({"tags":{"a":"\u007f"}})", 422, {"/tags/a"}},
        {"control in a tag's name", "PATCH", "/v1/vpcs/" + n.vpc, R"({"tags":{"a\tb":"c"}})", 422, {"/tags/a\tb"}},
        {"control in the project", "POST", "/v1/vpcs", R"({"cidrs":["10.9.0.0/16"],"project_id":"a\u0000b"})", 422, {"/project_id"}},
        {"NUL in a block", "POST", "/v1/vpcs", R"({"cidrs":["10.9.0.0/16\u0000"]})", 422, {"/cidrs/0"}},
        {"NUL in an id", "POST", "/v1/subnets", R"({"vpc_id":")" + n.vpc + R"(\u0000","cidr":"10.0.2.0/24"})", 422, {"/vpc_id"}},
        {"required cleared", "PATCH", "/v1/vpcs/" + n.vpc, R"({"cidrs":null})", 422, {"/cidrs"}},
        {"subnet left outside", "PATCH", "/v1/vpcs/" + n.vpc, R"({"cidrs":["10.0.0.0/16"]})", 409, {"/cidrs"}},
        {"not enforced", "POST", "/v1/vpcs", R"({"cidrs":["10.9.0.0/16"],"rdma":{}})", 422, {"/rdma"}},
        {"unknown limit", "POST", "/v1/vpcs", R"({"cidrs":["10.9.0.0/16"],"limits":{"flows":1}})", 422, {"/limits/flows"}},
        {"limits of zero, too large, negative, no number", "POST", "/v1/vpcs", R"({"cidrs":["10.9.0.0/16"],"limits":{"connections":0,"half_open":16777216,"new_per_second":-1,"fragments":"9","endpoint_connections":1.5}})", 422, {"/limits/connections", "/limits/half_open", "/limits/new_per_second", "/limits/fragments", "/limits/endpoint_connections"}},
        {"limits that are no object", "POST", "/v1/vpcs", R"({"cidrs":["10.9.0.0/16"],"limits":[]})", 422, {"/limits"}},
        {"time-outs below what the RFCs ask", "POST", "/v1/vpcs", R"({"cidrs":["10.9.0.0/16"],"timeouts":{"tcp_established":7439,"tcp_transitory":239,"udp":119,"udp_unanswered":119,"icmp":59}})", 422, {"/timeouts/tcp_established", "/timeouts/tcp_transitory", "/timeouts/udp", "/timeouts/udp_unanswered", "/timeouts/icmp"}},
        {"time-out too long, unknown", "POST", "/v1/vpcs", R"({"cidrs":["10.9.0.0/16"],"timeouts":{"udp":432001,"dns":5}})", 422, {"/timeouts/udp", "/timeouts/dns"}},
        {"mid_stream too long, flags no booleans", "POST", "/v1/vpcs", R"({"cidrs":["10.9.0.0/16"],"mid_stream":3601,"tcp_window_check":1,"mss_clamping":"no"})", 422, {"/mid_stream", "/tcp_window_check", "/mss_clamping"}},
        {"overlapping subnets", "POST", "/v1/subnets", subnet + R"("cidr":"10.0.0.0/23"})", 409, {"/cidr"}},
        {"subnet outside", "POST", "/v1/subnets", subnet + R"("cidr":"10.1.0.0/24"})", 422, {"/cidr"}},
        {"subnet of no family", "POST", "/v1/subnets", subnet + R"("mtu":1500})", 422, {"/cidr"}},
        {"IPv6 as cidr", "POST", "/v1/subnets", subnet + R"("cidr":"fd00:1:0:2::/64"})", 422, {"/cidr"}},
        {"gateway outside", "POST", "/v1/subnets", subnet + R"("cidr":"10.0.2.0/24","gateway_ip":"10.0.3.1"})", 422, {"/gateway_ip"}},
        {"gateway is broadcast", "POST", "/v1/subnets", subnet + R"("cidr":"10.0.2.0/24","gateway_ip":"10.0.2.255"})", 422, {"/gateway_ip"}},
        {"MTU too small", "POST", "/v1/subnets", subnet + R"("cidr":"10.0.2.0/24","mtu":68})", 422, {"/mtu"}},
        {"profile not enforced", "POST", "/v1/subnets", subnet + R"("cidr":"10.0.2.0/24","profile":"rdma"})", 422, {"/profile"}},
        {"no such VPC", "POST", "/v1/subnets", R"({"vpc_id":"00000000-0000-4000-8000-000000000001","cidr":"10.0.2.0/24"})", 404, {"/vpc_id"}},
        {"in use", "DELETE", "/v1/vpcs/" + n.vpc, "", 409, {""}},
    };
    // clang-format on
    for (const auto& refusal : refusals) check_refused(f, refusal);
    CHECK(f.remove("/v1/vpcs/" + n.vpc).text("/detail").find("subnet front") != std::string::npos);
}

TEST_CASE("what is wrong with a host or endpoint is named, and nothing changes") {
    Fixture f;
    Network n(f);
    const auto host = f.make("hosts", R"({"name":"h1","vteps":["192.0.2.1"]})");
    const auto endpoint = n.endpoint(f, R"(,"ip":"10.0.1.10","mac":"02:00:00:00:00:01")");
    const auto other_vpc = f.make("vpcs", R"({"cidrs":["10.0.0.0/16"]})");
    const auto other_group = f.make("security-groups", R"({"vpc_id":")" + other_vpc + "\"}");
    const std::string start = R"({"vtep":"192.0.2.11","subnet_id":")" + n.subnet + "\"";
    // clang-format off
    const Refusal refusals[] = {
        {"VTEP taken", "POST", "/v1/hosts", R"({"vteps":["192.0.2.1"]})", 409, {"/vteps"}},
        {"VTEP multicast", "POST", "/v1/hosts", R"({"vteps":["239.0.0.1"]})", 422, {"/vteps/0"}},
        {"NUL in a VTEP", "POST", "/v1/hosts", R"({"vteps":["192.0.2.9\u0000"]})", 422, {"/vteps/0"}},
        {"NUL in an IPv6 VTEP", "POST", "/v1/hosts", R"({"vteps":["2001:db8::9\u0000"]})", 422, {"/vteps/0"}},
        {"NUL in a word", "POST", "/v1/endpoints", start + R"(,"kind":"vm\u0000"})", 422, {"/kind"}},
        {"more VTEPs than a gateway takes", "POST", "/v1/hosts", R"({"vteps":["192.0.2.5","192.0.2.6","192.0.2.7","192.0.2.8"]})", 422, {"/vteps"}},
        {"VTEP twice", "POST", "/v1/hosts", R"({"vteps":["192.0.2.9","192.0.2.9"]})", 422, {"/vteps/1"}},
        {"no host", "POST", "/v1/endpoints", R"({"subnet_id":")" + n.subnet + "\"}", 422, {"/host_id"}},
        {"host twice", "POST", "/v1/endpoints", start + R"(,"host_id":")" + host + "\"}", 422, {"/vtep"}},
        {"outside", "POST", "/v1/endpoints", start + R"(,"ip":"10.0.2.10"})", 422, {"/ip"}},
        {"network address", "POST", "/v1/endpoints", start + R"(,"ip":"10.0.1.0"})", 422, {"/ip"}},
        {"broadcast address", "POST", "/v1/endpoints", start + R"(,"ip":"10.0.1.255"})", 422, {"/ip"}},
        {"the gateway's address", "POST", "/v1/endpoints", start + R"(,"ip":"10.0.1.1"})", 409, {"/ip"}},
        {"address taken", "POST", "/v1/endpoints", start + R"(,"ip":"10.0.1.10"})", 409, {"/ip"}},
        {"MAC taken", "POST", "/v1/endpoints", start + R"(,"mac":"02:00:00:00:00:01"})", 409, {"/mac"}},
        {"multicast MAC", "POST", "/v1/endpoints", start + R"(,"mac":"01:00:00:00:00:01"})", 422, {"/mac"}},
        {"a gateway's MAC", "POST", "/v1/endpoints", start + R"(,"mac":"02:5c:00:00:00:01"})", 422, {"/mac"}},
        {"group of another VPC", "POST", "/v1/endpoints", start + R"(,"security_group_ids":[")" + other_group + "\"]}", 422, {"/security_group_ids/0"}},
        {"no such group", "POST", "/v1/endpoints", start + R"(,"security_group_ids":["00000000-0000-4000-8000-000000000001"]})", 404, {"/security_group_ids/0"}},
        {"not a UUID", "POST", "/v1/endpoints", start + R"(,"security_group_ids":["web"]})", 422, {"/security_group_ids/0"}},
        {"bandwidth not enforced", "POST", "/v1/endpoints", start + R"(,"bandwidth_mbps":5})", 422, {"/bandwidth_mbps"}},
        {"another's source", "POST", "/v1/endpoints", start + R"(,"allowed_addresses":[{"cidr":"10.0.1.10/32","mac":"02:00:00:00:00:01"}]})", 409, {"/allowed_addresses"}},
        {"address immutable", "PATCH", "/v1/endpoints/" + endpoint, R"({"ip":"10.0.1.11"})", 422, {"/ip"}},
        {"subnet in use", "DELETE", "/v1/subnets/" + n.subnet, "", 409, {""}},
    };
    // clang-format on
    for (const auto& refusal : refusals) check_refused(f, refusal);
}

TEST_CASE("what is wrong with a group, rule or list is named, and nothing changes") {
    Fixture f;
    Network n(f);
    const auto group = n.group(f, R"([{"direction":"ingress","protocol":"tcp","port_min":443}])");
    const auto other_vpc = f.make("vpcs", R"({"cidrs":["10.0.0.0/16"]})");
    const auto other_group = f.make("security-groups", R"({"vpc_id":")" + other_vpc + "\"}");
    const auto rules = "/v1/security-groups/" + group + "/rules";
    // clang-format off
    const Refusal refusals[] = {
        {"no direction", "POST", rules, R"({})", 422, {"/direction"}},
        {"duplicate", "POST", rules, R"({"direction":"ingress","protocol":"tcp","port_min":443,"port_max":443})", 409, {""}},
        {"duplicate by other words", "POST", rules, R"({"direction":"ingress","protocol":6,"port_min":443,"remote_cidr":"0.0.0.0/0"})", 409, {""}},
        {"priority 0", "POST", rules, R"({"direction":"ingress","priority":0})", 422, {"/priority"}},
        {"priority too high", "POST", rules, R"({"direction":"ingress","priority":32001})", 422, {"/priority"}},
        {"ports without protocol", "POST", rules, R"({"direction":"ingress","port_min":1})", 422, {"/port_min"}},
        {"ports reversed", "POST", rules, R"({"direction":"ingress","protocol":"udp","port_min":2,"port_max":1})", 422, {"/port_max"}},
        {"port too high", "POST", rules, R"({"direction":"ingress","protocol":"udp","port_min":65536})", 422, {"/port_min"}},
        {"ICMP for IPv6", "POST", rules, R"({"direction":"ingress","protocol":"icmp","family":"ipv6"})", 422, {"/protocol"}},
        {"code without type", "POST", rules, R"({"direction":"ingress","protocol":"icmp","icmp_code":1})", 422, {"/icmp_code"}},
        {"family of the remote", "POST", rules, R"({"direction":"ingress","family":"ipv4","remote_cidr":"::/0"})", 422, {"/remote_cidr"}},
        {"host bits", "POST", rules, R"({"direction":"ingress","remote_cidr":"10.0.0.1/8"})", 422, {"/remote_cidr"}},
        {"two remotes", "POST", rules, R"({"direction":"ingress","remote_cidr":"10.0.0.0/8","remote_group_id":")" + group + "\"}", 422, {"/remote_group_id"}},
        {"group of another VPC", "POST", rules, R"({"direction":"ingress","remote_group_id":")" + other_group + "\"}", 422, {"/remote_group_id"}},
        {"unknown field", "POST", rules, R"({"direction":"ingress","port":1})", 422, {"/port"}},
        {"no such rule", "DELETE", rules + "/00000000-0000-4000-8000-000000000001", "", 404, {}},
        {"persist is no boolean", "PATCH", "/v1/security-groups/" + group, R"({"persist_established":1})", 422, {"/persist_established"}},
        {"block twice", "POST", "/v1/prefix-lists", R"({"cidrs":["10.0.0.0/8","10.0.0.0/8"]})", 422, {"/cidrs/1"}},
        {"in use by a rule", "DELETE", "/v1/security-groups/" + group, "", 409, {""}},
    };
    // clang-format on
    REQUIRE(f.post("/v1/security-groups/" + n.group(f) + "/rules",
                   R"({"direction":"ingress","remote_group_id":")" + group + "\"}")
                .status == 201);
    for (const auto& refusal : refusals) check_refused(f, refusal);
}

TEST_CASE("what is wrong with a pool, elastic IP or route is named, and nothing changes") {
    Fixture f;
    Network n(f);
    const auto endpoint = n.endpoint(f);
    f.make("external-pools",
           R"({"cidr":"203.0.113.0/29","mode":"on_link","reserved":["203.0.113.1/32"]})");
    const auto elastic =
        f.make("elastic-ips", R"({"address":"203.0.113.2","endpoint_id":")" + endpoint + "\"}");
    const auto bandwidth = f.make("bandwidths", R"({"mbps":100})");
    const auto table = f.make("route-tables", R"({"vpc_id":")" + n.vpc + "\"}");
    const auto routes = [](const std::string& route) { return R"({"routes":[)" + route + "]}"; };
    const std::string route_tables = "/v1/route-tables/" + table;
    // clang-format off
    const Refusal refusals[] = {
        {"pools overlap", "POST", "/v1/external-pools", R"({"cidr":"203.0.113.0/30"})", 409, {"/cidr"}},
        {"pool of private addresses", "POST", "/v1/external-pools", R"({"cidr":"10.0.0.0/8"})", 422, {"/cidr"}},
        {"pool around private addresses", "POST", "/v1/external-pools", R"({"cidr":"192.160.0.0/11"})", 422, {"/cidr"}},
        {"pool of loopback addresses", "POST", "/v1/external-pools", R"({"cidr":"127.0.0.0/24"})", 422, {"/cidr"}},
        {"pool of multicast addresses", "POST", "/v1/external-pools", R"({"cidr":"224.0.0.0/24"})", 422, {"/cidr"}},
        {"IPv6 pool", "POST", "/v1/external-pools", R"({"cidr":"2001:db8::/64"})", 422, {"/cidr"}},
        {"reserved outside", "POST", "/v1/external-pools", R"({"cidr":"198.51.100.0/24","reserved":["203.0.113.0/32"]})", 422, {"/reserved/0"}},
        {"no pool's address", "POST", "/v1/elastic-ips", R"({"address":"198.51.100.1"})", 422, {"/address"}},
        {"broadcast of the link", "POST", "/v1/elastic-ips", R"({"address":"203.0.113.7"})", 422, {"/address"}},
        {"reserved", "POST", "/v1/elastic-ips", R"({"address":"203.0.113.1"})", 422, {"/address"}},
        {"taken", "POST", "/v1/elastic-ips", R"({"address":"203.0.113.2"})", 409, {"/address"}},
        {"endpoint has one", "POST", "/v1/elastic-ips", R"({"endpoint_id":")" + endpoint + "\"}", 409, {"/endpoint_id"}},
        {"bandwidth 0", "PATCH", "/v1/elastic-ips/" + elastic, R"({"bandwidth_mbps":0})", 422, {"/bandwidth_mbps"}},
        {"no such bandwidth", "PATCH", "/v1/elastic-ips/" + elastic, R"({"bandwidth_id":")" + endpoint + "\"}", 404, {"/bandwidth_id"}},
        {"both limits", "PATCH", "/v1/elastic-ips/" + elastic, R"({"bandwidth_mbps":5,"bandwidth_id":")" + bandwidth + "\"}", 422, {"/bandwidth_id"}},
        {"bandwidth without rate", "POST", "/v1/bandwidths", "{}", 422, {"/mbps"}},
        {"rate 0", "POST", "/v1/bandwidths", R"({"mbps":0})", 422, {"/mbps"}},
        {"rate beyond a meter's", "POST", "/v1/bandwidths", R"({"mbps":4000001})", 422, {"/mbps"}},
        {"burst under a packet", "POST", "/v1/bandwidths", R"({"mbps":5,"burst_kbit":79})", 422, {"/burst_kbit"}},
        {"bandwidth's addresses", "PATCH", "/v1/bandwidths/" + bandwidth, R"({"elastic_ip_ids":[]})", 422, {"/elastic_ip_ids"}},
        {"only if free", "PATCH", "/v1/elastic-ips/" + elastic, R"({"only_if_free":true,"endpoint_id":")" + n.endpoint(f) + "\"}", 409, {"/endpoint_id"}},
        {"endpoint in use", "DELETE", "/v1/endpoints/" + endpoint, "", 409, {""}},
        {"own block", "PATCH", route_tables, routes(R"({"destination":"10.0.1.0/24","next_hop":"blackhole"})"), 422, {"/routes/0/destination"}},
        {"twice", "PATCH", route_tables, routes( R"({"destination":"0.0.0.0/0","next_hop":"internet"},{"destination":"0.0.0.0/0","next_hop":"blackhole"})"), 422, {"/routes/1/destination"}},
        {"nowhere", "PATCH", route_tables, routes(R"({"destination":"0.0.0.0/0","next_hop":{}})"), 422, {"/routes/0/next_hop"}},
        {"peering", "PATCH", route_tables, routes(R"({"destination":"0.0.0.0/0","next_hop":{"peering_id":"x"}})"), 422, {"/routes/0/next_hop/peering_id"}},
        {"main table", "DELETE", "/v1/route-tables/" + f.get("/v1/route-tables?is_main=true").text("/items/0/id"), "", 409, {""}},
    };
    // clang-format on
    for (const auto& refusal : refusals) check_refused(f, refusal);
}

TEST_CASE("what is wrong with a NAT gateway is named, and nothing changes") {
    Fixture f;
    Network n(f), other(f);
    f.make("external-pools", R"({"cidr":"203.0.113.0/27"})");
    const auto endpoint = n.endpoint(f);
    const auto attached =
        f.make("elastic-ips", R"({"name":"web","endpoint_id":")" + endpoint + "\"}");
    const auto limit = f.make("bandwidths", R"({"mbps":100})");
    const auto shared = f.make("elastic-ips", R"({"name":"shared"})");
    const auto slow = f.make("elastic-ips", R"({"bandwidth_mbps":5})");
    const auto unused = f.make("elastic-ips", "{}");
    const auto body = [&](const std::string& more, const std::string& vpc) {
        return R"({"name":"out","vpc_id":")" + vpc + "\"," + more + "}";
    };
    const auto addresses = [](const std::vector<std::string>& ids) {
        std::string list;
        for (const auto& id : ids) list += (list.empty() ? "\"" : ",\"") + id + "\"";
        return R"("elastic_ip_ids":[)" + list + "]";
    };
    const auto nat = f.make("nat-gateways", body(addresses({shared}), n.vpc));
    const auto at = "/v1/nat-gateways/" + nat;
    const auto table = "/v1/route-tables/" +
                       f.get("/v1/route-tables?is_main=true&vpc_id=" + n.vpc).text("/items/0/id");
    const auto theirs =
        "/v1/route-tables/" +
        f.get("/v1/route-tables?is_main=true&vpc_id=" + other.vpc).text("/items/0/id");
    const auto routes = [&](const std::string& destination) {
        return R"({"routes":[{"destination":")" + destination +
               R"(","next_hop":{"nat_gateway_id":")" + nat + "\"}}]}";
    };
    REQUIRE(f.patch(table, routes("0.0.0.0/0")).status == 200);
    const std::string path = "/v1/nat-gateways", elastic = "/v1/elastic-ips/";
    const auto free = addresses({unused});
    std::vector<std::string> many;
    for (int i = 0; i < 17; ++i) many.push_back(f.make("elastic-ips", "{}"));
    // clang-format off
    const Refusal refusals[] = {
        {"no VPC", "POST", path, "{" + free + "}", 422, {"/vpc_id"}},
        {"no addresses", "POST", path, R"({"vpc_id":")" + n.vpc + "\"}", 422, {"/elastic_ip_ids"}},
        {"an empty list", "POST", path, body(addresses({}), n.vpc), 422, {"/elastic_ip_ids"}},
        {"17 addresses", "POST", path, body(addresses(many), n.vpc), 422, {"/elastic_ip_ids"}},
        {"unknown address", "POST", path, body(addresses({n.vpc}), n.vpc), 404, {"/elastic_ip_ids/0"}},
        {"twice the same", "POST", path, body(addresses({unused, unused}), n.vpc), 422, {"/elastic_ip_ids/1"}},
        {"an endpoint's", "POST", path, body(addresses({unused, attached}), n.vpc), 409, {"/elastic_ip_ids/1"}},
        {"another NAT gateway's", "POST", path, body(addresses({shared}), n.vpc), 409, {"/elastic_ip_ids/0"}},
        {"half a block of ports", "POST", path, body(free + R"(,"ports_per_endpoint":100)", n.vpc), 422, {"/ports_per_endpoint"}},
        {"no port", "POST", path, body(free + R"(,"ports_per_endpoint":0)", n.vpc), 422, {"/ports_per_endpoint"}},
        {"more than an endpoint may have", "POST", path, body(free + R"(,"ports_per_endpoint":4160)", n.vpc), 422, {"/ports_per_endpoint"}},
        {"unknown mapping", "POST", path, body(free + R"(,"mapping":"address_dependent")", n.vpc), 422, {"/mapping"}},
        {"unknown filtering", "POST", path, body(free + R"(,"filtering":"none")", n.vpc), 422, {"/filtering"}},
        {"open filter, closed mapping", "POST", path, body(free + R"(,"mapping":"address_and_port_dependent","filtering":"endpoint_independent")", n.vpc), 422, {"/filtering"}},
        {"two limits", "PATCH", at, "{" + addresses({shared, slow}) + "}", 422, {"/elastic_ip_ids/1"}},
        {"another VPC", "PATCH", at, R"({"vpc_id":")" + other.vpc + "\"}", 422, {"/vpc_id"}},
        {"in use by a route", "DELETE", at, "", 409, {""}},
        {"an address in use", "DELETE", elastic + shared, "", 409, {""}},
        {"attach its address", "PATCH", elastic + shared, R"({"endpoint_id":")" + n.endpoint(f) + "\"}", 409, {"/endpoint_id"}},
        {"a VPC in use", "DELETE", "/v1/vpcs/" + n.vpc, "", 409, {""}},
        {"route of another VPC", "PATCH", theirs, routes("0.0.0.0/0"), 422, {"/routes/0/next_hop/nat_gateway_id"}},
        {"IPv6", "PATCH", table, routes("::/0"), 422, {"/routes/0/next_hop/nat_gateway_id"}},
        {"no such NAT gateway", "PATCH", table, R"({"routes":[{"destination":"0.0.0.0/0","next_hop":{"nat_gateway_id":")" + n.vpc + "\"}}]}", 404, {"/routes/0/next_hop/nat_gateway_id"}},
        {"two next hops", "PATCH", table, R"({"routes":[{"destination":"0.0.0.0/0","next_hop":{"internet":true,"nat_gateway_id":")" + nat + "\"}}]}", 422, {"/routes/0/next_hop"}},
    };
    // clang-format on
    for (const auto& refusal : refusals) check_refused(f, refusal);
    // Who is in the way is named.
    CHECK(f.post(path, body(addresses({shared}), n.vpc)).text("/errors/0/detail") ==
          "elastic_ip shared (" + shared + ") is an address of nat_gateway out (" + nat +
              ") already");
    CHECK(f.patch(at, "{" + addresses({attached}) + "}").text("/errors/0/detail") ==
          "elastic_ip web (" + attached + ") is attached to endpoint (" + endpoint +
              "): detach it first");
    CHECK(f.remove(at).text("/errors/0/detail").starts_with("it is used by route_table main ("));
    // A limit that one of two addresses has is the other's, too.
    CHECK(f.patch(at, "{" + addresses({shared, unused}) + "}").status == 200);
    CHECK(f.patch(elastic + unused, R"({"bandwidth_mbps":5})").status == 422);
    CHECK(f.patch(elastic + unused, R"({"bandwidth_id":")" + limit + "\"}").status == 200);
    CHECK(f.get(elastic + shared).text("/bandwidth_id") == limit);
    CHECK(f.patch(elastic + shared, R"({"bandwidth_id":null})").status == 200);
    CHECK(f.get(elastic + unused).text("/bandwidth_id") == "null");
    CHECK(f.get(elastic + unused).text("/nat_gateway_id") == nat);
}

TEST_CASE("a body that is no JSON object is refused, whatever it is") {
    Fixture f;
    const auto deep = [](int levels) {
        return R"({"cidrs":)" + std::string(static_cast<std::size_t>(levels), '[') +
               std::string(static_cast<std::size_t>(levels), ']') + "}";
    };
    const std::string bodies[] = {"",
                                  "{",
                                  "{\"cidrs\":[}",
                                  "nul",
                                  "{\"name\":\"\xff\xfe\"}",
                                  "{} {}",
                                  "{\"name\":\"\x01\"}",
                                  deep(100),
                                  deep(100'000)};
    for (const auto& body : bodies) {
        const auto reply = f.post("/v1/vpcs", body);
        CHECK(reply.status == 400);
        CHECK(reply.text("/type") == "/problems/bad-request");
    }
    for (const auto* body : {"[]", "1", "null", "\"x\""})
        CHECK(f.post("/v1/vpcs", body).status == 422);
    CHECK(f.get("/v1/vpcs").text("/items") == "[]");
}

TEST_CASE("a member that occurs twice in an object is refused by its name") {
    Fixture f;
    const auto refused = [&](const std::string& body) {
        const auto reply = f.post("/v1/vpcs", body);
        CHECK(reply.status == 400);
        return reply.text("/detail");
    };
    CHECK(refused(R"({"cidrs":["10.0.0.0/16"],"cidrs":["10.1.0.0/16"]})") ==
          "the body has the member \"cidrs\" twice in one object");
    CHECK(refused(R"({"cidrs":["10.0.0.0/16"],"tags":{"a":"1","b":"2","a":"3"}})")
              .find("\"a\" twice") != std::string::npos);
    CHECK(refused(R"({"name":"x","n\u0061me":"y"})").find("\"name\" twice") != std::string::npos);
    CHECK(f.get("/v1/vpcs").text("/items") == "[]");
    // The same name in two objects is another matter.
    CHECK(
        f.post("/v1/vpcs", R"({"name":"a","cidrs":["10.0.0.0/16"],"tags":{"name":"b"}})").status ==
        201);
}

TEST_CASE("what gateways say of themselves is held against what is asked for") {
    Fixture f;
    f.gateways->facts.vteps = {*sluice::parse_ip("192.0.2.1"), *sluice::parse_ip("2001:db8::1")};
    f.gateways->facts.addresses = {*sluice::parse_ip("192.0.2.2")};
    f.gateways->facts.tenant_mtu = 1500;
    f.gateways->connect("gw1");
    const Network n(f);
    const std::string subnet = R"({"vpc_id":")" + n.vpc + R"(","cidr":"10.0.2.0/24","mtu":)";
    const std::string endpoint = R"({"subnet_id":")" + n.subnet + R"(","vtep":)";
    const Refusal refusals[] = {
        {"the gateway's VTEP",
         "POST",
         "/v1/hosts",
         R"({"vteps":["192.0.2.9","192.0.2.1"]})",
         422,
         {"/vteps/1"}},
        {"its IPv6 VTEP", "POST", "/v1/hosts", R"({"vteps":["2001:db8::1"]})", 422, {"/vteps/0"}},
        {"its port's address",
         "POST",
         "/v1/hosts",
         R"({"vteps":["192.0.2.2"]})",
         422,
         {"/vteps/0"}},
        {"an endpoint's VTEP",
         "POST",
         "/v1/endpoints",
         endpoint + R"("192.0.2.1"})",
         422,
         {"/vtep"}},
        {"MTU over the underlay", "POST", "/v1/subnets", subnet + "1501}", 422, {"/mtu"}},
        {"the same later", "PATCH", "/v1/subnets/" + n.subnet, R"({"mtu":1501})", 422, {"/mtu"}}};
    for (const auto& refusal : refusals) check_refused(f, refusal);
    CHECK(f.post("/v1/subnets", subnet + "1500}").text("/status/state") == "active");
    CHECK(f.get("/v1/gateways").text("/items/0/address") == "192.0.2.1, 2001:db8::1");

    // It comes back with less: what is there stays, and says so.
    f.gateways->facts.tenant_mtu = 1400;
    f.gateways->connect("gw1");
    const auto there = f.get("/v1/subnets/" + n.subnet);
    CHECK(there.text("/status/state") == "degraded");
    CHECK(there.text("/status/reason").find("1400 octets") != std::string::npos);
    CHECK(f.patch("/v1/subnets/" + n.subnet + "?wait=5", R"({"name":"x"})").status == 200);
    CHECK(f.patch("/v1/subnets/" + n.subnet + "?wait=5", R"({"mtu":1400})").text("/status/state") ==
          "active");
}

TEST_CASE("what a gateway reports is read; what is malformed in it is as if not said") {
    using sluice::model::read_facts;
    const auto facts = read_facts(
        R"({"vteps":["192.0.2.1",7,"x"],"ports":[3,{"role":"underlay","mtu":1600,"addresses":["192.0.2.1/24"],)"
        R"("next_hops":["192.0.2.254"]},{"role":"underlay","mtu":9000},{"role":"uplink","mtu":1400,)"
        R"("addresses":["203.0.113.1/24"],"next_hops":3}]})");
    CHECK(facts.vteps.size() == 1);
    CHECK(facts.addresses.size() == 2);
    CHECK(facts.next_hops.size() == 1);
    CHECK(facts.tenant_mtu == 1550);
    CHECK(read_facts(R"({"vteps":["2001:db8::1"],"ports":[{"role":"underlay","mtu":1600}]})")
              .tenant_mtu == 1530);
    for (const auto* text : {"", "[]", "{", R"({"ports":{}})", R"({"ports":[{"role":"underlay"}]})",
                             R"({"ports":[{"role":"underlay","mtu":"1600"}]})"})
        CHECK(read_facts(text) == sluice::model::GatewayFacts{});
}

TEST_CASE("what a later release brings is 501, what nobody has is 404") {
    Fixture f;
    for (const auto* kind :
         {"load-balancers", "peerings", "gpu-servers", "quotas", "batch", "watch", "traces"})
        CHECK(f.get(std::string("/v1/") + kind).status == 501);
    CHECK(f.post("/v1/vpcs?dry_run=true", "{}").status == 501);
    f.extra_headers = {{"If-Match", "\"1\""}};
    CHECK(f.post("/v1/vpcs", "{}").status == 501);
    f.extra_headers = {{"Idempotency-Key", "1"}};
    CHECK(f.post("/v1/vpcs", "{}").status == 501);
    f.extra_headers.clear();
    for (const auto* target : {"/", "/v2/vpcs", "/v1", "/v1/things", "/v1/vpcs/x/y", "/v1/vpcs/x"})
        CHECK(f.get(target).status == 404);
    CHECK(f.get("/v1/%zz").status == 400);
    for (const auto* target :
         {"/v1/vpcs?name=%ff%fe", "/v1/vpcs?%ff=1", "/v1/vpcs/%c0%af", "/v1/vpcs?name=%ed%a0%80"}) {
        CHECK(f.get(target).status == 400);
        CHECK(f.get(target).text("/detail") == "the request's target is not UTF-8");
    }
    CHECK(f.get("/v1/vpcs?name=%c3%a4").status == 200);
    CHECK(f.call("PUT", "/v1/vpcs").status == 405);
    CHECK(f.call("POST", "/v1/gateways", "{}").status == 405);
    CHECK(f.get("/v1/vpcs?colour=blue").status == 400);
    CHECK(f.get("/v1/vpcs?limit=1001").status == 400);
    CHECK(f.get("/v1/vpcs?page_token=x").status == 400);
    CHECK(f.post("/v1/vpcs?wait=x", R"({"cidrs":["10.0.0.0/16"]})").status == 400);
    CHECK(f.get("/v1/vpcs").text("/items") == "[]");
}
