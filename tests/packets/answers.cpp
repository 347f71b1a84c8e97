// SPDX-License-Identifier: Apache-2.0
// Writes what the gateway answers, translates and fragments into a capture, and one line a packet
// with the tshark filter that it has to match: for run-2-answers.
#include <cstdio>
#include <string>
#include <vector>

#include "dataplane/wire/builder.hpp"
#include "dataplane/wire/echo.hpp"
#include "dataplane/wire/fragment.hpp"
#include "dataplane/wire/icmp_error.hpp"
#include "dataplane/wire/neighbour.hpp"
#include "dataplane/wire/quote.hpp"

using namespace sluice;
using namespace sluice::wire;
using namespace sluice::wire::build;

namespace {

struct Written {
    std::string filter;
    Bytes frame;
};

class Capture {
  public:
    void add(std::string filter, Bytes frame) {
        packets_.push_back({std::move(filter), std::move(frame)});
    }
    // `writer` as those of neighbour.hpp: fills a span, returns the length.
    template <class Writer>
    void write(std::string filter, Writer writer) {
        Bytes out(2048);
        out.resize(writer(std::span{out}));
        add(std::move(filter), std::move(out));
    }
    [[nodiscard]] bool save(const char* path) const {
        std::FILE* file = std::fopen(path, "wb");
        if (file == nullptr) return false;
        const auto words = [file](std::initializer_list<std::uint32_t> values) {
            for (const std::uint32_t value : values) std::fwrite(&value, sizeof value, 1, file);
        };
        words({0xa1b2c3d4, 2 | 4 << 16, 0, 0, 65535, 1});  // version 2.4, Ethernet
        for (std::uint32_t i = 0; i < packets_.size(); ++i) {
            const Bytes& frame = packets_[i].frame;
            const auto size = static_cast<std::uint32_t>(frame.size());
            words({i, 0, size, size});
            std::fwrite(frame.data(), 1, frame.size(), file);
            std::printf("%s\n", packets_[i].filter.c_str());
        }
        return std::fclose(file) == 0;
    }

  private:
    std::vector<Written> packets_;
};

const Neighbour kGateway{"10.0.0.1"_ip, "02:00:00:00:00:01"_mac};
const Neighbour kHost{"10.0.0.2"_ip, "02:00:00:00:00:02"_mac};
const Neighbour kGateway6{"2001:db8::1"_ip, "02:00:00:00:00:01"_mac};
const Neighbour kHost6{"2001:db8::2"_ip, "02:00:00:00:00:02"_mac};

void add_neighbours(Capture& capture) {
    const auto role = NeighbourRole::router;
    capture.write("arp.opcode == 1 && arp.dst.proto_ipv4 == 10.0.0.2 && eth.dst.ig == 1",
                  [](auto out) { return write_arp_request(out, kGateway, kHost.address); });
    capture.write("arp.opcode == 1 && eth.dst == 02:00:00:00:00:02",
                  [](auto out) { return write_arp_probe(out, kGateway, kHost); });
    capture.write("arp.opcode == 2 && arp.src.hw_mac == 02:00:00:00:00:01",
                  [](auto out) { return write_arp_reply(out, kGateway, kHost); });
    capture.write("arp.isgratuitous",
                  [](auto out) { return write_arp_announcement(out, kGateway); });
    capture.write(
        "icmpv6.type == 135 && icmpv6.nd.ns.target_address == 2001:db8::2 && "
        "ipv6.dst == ff02::1:ff00:2 && eth.dst == 33:33:ff:00:00:02 && "
        "icmpv6.opt.linkaddr == 02:00:00:00:00:01",
        [](auto out) { return write_solicitation(out, kGateway6, kHost6.address); });
    capture.write("icmpv6.type == 135 && ipv6.dst == 2001:db8::2",
                  [](auto out) { return write_solicitation_probe(out, kGateway6, kHost6); });
    capture.write(
        "icmpv6.type == 136 && icmpv6.nd.na.flag.s == 1 && icmpv6.nd.na.flag.r == 1 && "
        "icmpv6.opt.linkaddr == 02:00:00:00:00:01",
        [&](auto out) { return write_advertisement(out, kGateway6, kHost6, role); });
    capture.write(
        "icmpv6.type == 136 && icmpv6.nd.na.flag.s == 0 && icmpv6.nd.na.flag.o == 1 && "
        "ipv6.dst == ff02::1",
        [&](auto out) { return write_unsolicited_advertisement(out, kGateway6, role); });
}

void add_echo(Capture& capture) {
    const auto reply = [&](const char* filter, Bytes request) {
        const auto answer = make_echo_reply(request);
        capture.add(filter, {answer.begin(), answer.end()});
    };
    const Payload payload{filler(57)};
    reply("icmp.type == 0 && icmp.ident == 77 && ip.src == 10.0.0.2 && ip.ttl == 64",
          packet({Ethernet{}, Ipv4{.ttl = 2}, Icmp{}, payload}));
    reply("icmp.type == 0 && ip.hdr_len == 20",
          packet({Ethernet{}, Ipv4{.options = {7, 39, 4}}, Icmp{}, payload}));
    reply("icmpv6.type == 129 && icmpv6.echo.identifier == 77 && ipv6.src == 2001:db8::2",
          packet({Ethernet{}, Ipv6{}, Icmp{.type = 128}, payload}));
    reply("icmpv6.type == 129 && ipv6.nxt == 58",
          packet({Ethernet{}, Ipv6{}, Extension{.kind = ipv6::kHopByHop}, Icmp{.type = 128},
                  payload}));
}

void add_errors(Capture& capture) {
    struct Kind {
        IcmpError error;
        const char* v4;
        const char* v6;
    };
    const Kind kinds[] = {
        {IcmpError::time_exceeded, "icmp.type == 11 && icmp.code == 0",
         "icmpv6.type == 3 && icmpv6.code == 0"},
        {IcmpError::no_route, "icmp.type == 3 && icmp.code == 0",
         "icmpv6.type == 1 && icmpv6.code == 0"},
        {IcmpError::address_unreachable, "icmp.type == 3 && icmp.code == 1",
         "icmpv6.type == 1 && icmpv6.code == 3"},
        {IcmpError::admin_prohibited, "icmp.type == 3 && icmp.code == 13",
         "icmpv6.type == 1 && icmpv6.code == 1"},
        {IcmpError::port_unreachable, "icmp.type == 3 && icmp.code == 3",
         "icmpv6.type == 1 && icmpv6.code == 4"},
        {IcmpError::too_big, "icmp.type == 3 && icmp.code == 4 && icmp.mtu == 1450",
         "icmpv6.type == 2 && icmpv6.mtu == 1450"},
    };
    for (const auto& kind : kinds)
        for (const std::size_t size : {11U, 1460U}) {
            const Payload payload{filler(size)};
            const Bytes v4 =
                packet({Ethernet{}, Ipv4{.flags_and_offset = ipv4::kDontFragment}, Tcp{}, payload});
            capture.write(std::string{kind.v4} + " && tcp.dstport == 80 && ip.src == 10.0.0.254",
                          [&](auto out) {
                              return write_icmp_error(out, v4, {kind.error, "10.0.0.254"_ip, 1450});
                          });
            const Bytes v6 = packet({Ethernet{}, Ipv6{}, Udp{.destination = 9000}, payload});
            capture.write(std::string{kind.v6} + " && udp.dstport == 9000", [&](auto out) {
                return write_icmp_error(out, v6, {kind.error, "2001:db8::fe"_ip, 1450});
            });
        }
}

// Errors about packets that were sent from 203.0.113.1 (2001:db8:1::1), given back to those who
// sent them: 10.0.0.1 (2001:db8::1), port or identifier 7777.
void add_quotes(Capture& capture) {
    const auto translate = [&](const char* filter, Bytes received) {
        const auto quote = parse_quote(received);
        if (!quote) return;
        const bool v4 = quote->source.is_v4();
        Tuple inside = quote->tuple;
        inside.source = v4 ? "10.0.0.1"_ip : "2001:db8::1"_ip;
        inside.source_port = 7777;
        if (!translate_quote(received, *quote, {quote->source, inside.source, inside})) return;
        received.insert(received.begin(), ethernet::kSize, 2);
        store(&received[ethernet::kType], v4 ? ethernet::kIpv4 : ethernet::kIpv6);
        capture.add(filter, std::move(received));
    };
    const auto v4 = [&](const char* filter, const Layer& upper) {
        translate(filter,
                  packet({Ipv4{.source = "198.51.100.9"_ip, .destination = "203.0.113.1"_ip},
                          Icmp{.type = 3, .code = 1, .identifier = 0, .sequence = 0},
                          Ipv4{.source = "203.0.113.1"_ip, .destination = "198.51.100.1"_ip}, upper,
                          Payload{filler(20)}}));
    };
    v4("icmp.type == 3 && tcp.srcport == 7777 && tcp.checksum.status == 1 && ip.src == 10.0.0.1",
       Tcp{});
    v4("icmp.type == 3 && udp.srcport == 7777 && udp.checksum.status == 1 && ip.src == 10.0.0.1",
       Udp{.destination = 9000});
    v4("icmp.type == 3 && icmp.ident == 7777 && ip.src == 10.0.0.1", Icmp{});
    const auto v6 = [&](const char* filter, std::uint8_t protocol, const Layer& upper) {
        const Ipv6 lost{.source = "2001:db8:1::1"_ip, .destination = "2001:db8:9::1"_ip};
        Bytes quoted = packet({lost, upper, Payload{filler(20)}});
        quoted[ipv6::kNextHeader] = protocol;
        translate(
            filter,
            packet({Ipv6{.source = "2001:db8:9::9"_ip, .destination = "2001:db8:1::1"_ip},
                    Icmp{.type = 1, .code = 3, .identifier = 0, .sequence = 0}, Payload{quoted}}));
    };
    v6("icmpv6.type == 1 && tcp.srcport == 7777 && tcp.checksum.status == 1 && ipv6.src == "
       "2001:db8::1",
       6, Tcp{});
    v6("icmpv6.type == 1 && udp.srcport == 7777 && udp.checksum.status == 1 && ipv6.src == "
       "2001:db8::1",
       17, Udp{.destination = 9000});
    v6("icmpv6.type == 1 && icmpv6.echo.identifier == 7777", 58, Icmp{.type = 128});
}

// A datagram cut for 1,450 octets, and the pieces cut again for 600.
void add_fragments(Capture& capture) {
    const Bytes frame = packet({Ethernet{}, Ipv4{.options = {148, 4, 0, 0}},
                                Udp{.destination = 9000}, Payload{filler(3000)}});
    std::vector<Bytes> pieces{{frame.begin() + ethernet::kSize, frame.end()}};
    for (const std::size_t mtu : {1450U, 600U}) {
        std::vector<Bytes> smaller;
        for (const Bytes& piece : pieces) {
            const auto plan = FragmentPlan::make(piece, mtu);
            for (std::size_t i = 0; plan && i < plan->count(); ++i) {
                const Fragment fragment = (*plan)[i];
                Bytes out(ipv4::kMaxHeader);
                out.resize(plan->write_header(i, out));
                const auto payload = piece.begin() + fragment.payload_offset;
                out.insert(out.end(), payload, payload + fragment.payload_length);
                smaller.push_back(std::move(out));
            }
        }
        pieces = std::move(smaller);
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        Bytes piece = std::move(pieces[i]);
        piece.insert(piece.begin(), frame.begin(), frame.begin() + ethernet::kSize);
        // With the last one tshark has the whole datagram, and its checksum.
        capture.add(i + 1 == pieces.size() ? "udp.length == 3008 && udp.checksum.status == 1 && "
                                             "ip.opt.ra == 0"
                                           : "ip.flags.mf == 1 && ip.len <= 600",
                    std::move(piece));
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::fputs("usage: answers CAPTURE\n", stderr);
        return 2;
    }
    Capture capture;
    add_neighbours(capture);
    add_echo(capture);
    add_errors(capture);
    add_quotes(capture);
    add_fragments(capture);
    return capture.save(arguments[1]) ? 0 : 1;
}
