// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/pcap_file.hpp"

#include <fmt/format.h>
#include <pcap/pcap.h>

#include <array>
#include <memory>
#include <vector>

#include "bench/pktgen/network.hpp"
#include "bench/pktgen/schedule.hpp"
#include "bench/pktgen/templates.hpp"

namespace sluice::pktgen {
namespace {

struct Closer {
    void operator()(pcap_t* handle) const { pcap_close(handle); }
    void operator()(pcap_dumper_t* dumper) const { pcap_dump_close(dumper); }
};

}  // namespace

Result<void> write_pcap(const Profile& profile, const std::string& file, std::uint64_t packets,
                        double rate) {
    constexpr MacAddress kOwn{{0x02, 0, 0, 0, 0, 0x02}};
    constexpr int kLongest = 65'535;
    constexpr double kNanoseconds = 1e9;
    const std::unique_ptr<pcap_t, Closer> handle(
        pcap_open_dead_with_tstamp_precision(DLT_EN10MB, kLongest, PCAP_TSTAMP_PRECISION_NANO));
    if (!handle) return Error{Error::Code::exhausted, "no memory", ""};
    std::array<LinkMacs, 2> macs;
    std::array<std::unique_ptr<pcap_dumper_t, Closer>, 2> files;
    for (std::size_t i = 0; i < profile.ports.size(); ++i) {
        const auto& port = profile.ports[i];
        if (port.gateway_mac.is_zero())
            return Error{Error::Code::invalid,
                         "missing: nobody can be asked for it when packets go to a file",
                         fmt::format("port[{}].gateway_mac", i)};
        macs[i] = {port.mac.is_zero() ? kOwn : port.mac, port.gateway_mac};
        const auto name = i == 0 ? file : file + ".uplink";
        files[i].reset(pcap_dump_open(handle.get(), name.c_str()));
        if (!files[i]) return Error{Error::Code::unavailable, pcap_geterr(handle.get()), ""};
    }
    const Network network(profile);
    const Templates templates(profile, network, macs);
    const Lanes lanes(profile);
    Schedule schedule(profile);
    std::vector<std::uint32_t> sequence(lanes.count());
    std::vector<std::uint8_t> frame(profile.largest_frame() + templates.stride() + 64);
    for (std::uint64_t i = 0; i < packets; ++i) {
        const auto next = schedule.next();
        const auto time = static_cast<std::uint64_t>(static_cast<double>(i) * kNanoseconds / rate);
        const auto octets =
            templates.write(frame.data(), next.lane, next.share, sequence[next.lane]++, time);
        pcap_pkthdr header{};
        header.ts.tv_sec = static_cast<time_t>(time / 1'000'000'000);
        header.ts.tv_usec = static_cast<suseconds_t>(time % 1'000'000'000);
        header.caplen = header.len = octets;
        auto* out = files[static_cast<std::size_t>(templates.side(next.lane))].get();
        pcap_dump(reinterpret_cast<u_char*>(out), &header, frame.data());
    }
    for (const auto& out : files)
        if (out && pcap_dump_flush(out.get()) != 0)
            return Error{Error::Code::unavailable, "cannot be written: is the disk full?", ""};
    return {};
}

}  // namespace sluice::pktgen
