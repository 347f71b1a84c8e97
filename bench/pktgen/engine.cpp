// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/engine.hpp"

#include <fmt/format.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <algorithm>
#include <cstring>

#include "bench/pktgen/find_stamp.hpp"

namespace sluice::pktgen {
namespace {

constexpr unsigned kBuffers = 8191, kCache = 256;
constexpr std::size_t kAnswerOctets = 128;

std::uint8_t* octets(rte_mbuf* packet) {
    return rte_pktmbuf_mtod(packet, std::uint8_t*);
}
std::span<const std::uint8_t> first_segment(rte_mbuf* packet) {
    return {octets(packet), packet->data_len};
}

void clear(rte_mempool*, void*, void* object, unsigned) {
    auto* packet = static_cast<rte_mbuf*>(object);
    std::memset(packet->buf_addr, 0, packet->buf_len);
}

// One short frame; false if the device has no room for it.
bool send_one(std::uint16_t device, rte_mempool* pool, std::span<const std::uint8_t> frame) {
    rte_mbuf* packet = rte_pktmbuf_alloc(pool);
    if (packet == nullptr) return false;
    // Shorter than any Ethernet frame may be: padded with zeros.
    constexpr std::size_t kLeast = 60;
    const std::size_t size = std::max(frame.size(), kLeast);
    std::memset(octets(packet), 0, kAnswerOctets);
    std::copy(frame.begin(), frame.end(), octets(packet));
    packet->data_len = static_cast<std::uint16_t>(size);
    packet->pkt_len = static_cast<std::uint32_t>(size);
    if (rte_eth_tx_burst(device, 0, &packet, 1) == 1) return true;
    rte_pktmbuf_free(packet);
    return false;
}

}  // namespace

Engine::Engine(const Profile& profile, const Network& network, std::vector<Link> links,
               Progress& progress)
    : links_(std::move(links)),
      progress_(progress),
      numbering_(profile),
      schedule_(profile),
      templates_(profile, network, link_macs(links_)),
      lanes_(numbering_.count()) {
    for (std::uint32_t i = 0; i < lanes_.size(); ++i)
        lanes_[i].place = Place(network.expected(numbering_.flow(i), numbering_.way(i)));
}

Result<std::unique_ptr<Engine>> Engine::create(const Profile& profile, const Network& network,
                                               std::vector<Link> links, Progress& progress) {
    const std::uint16_t device = links[0].device;
    auto engine = std::unique_ptr<Engine>(new Engine(profile, network, std::move(links), progress));
    auto pool = make_send_pool(device, profile.largest_frame() + engine->templates_.stride());
    if (!pool) return pool.error();
    engine->pool_ = *pool;
    return engine;
}

Engine::~Engine() {
    rte_mempool_free(pool_);
}

void Engine::begin(const Trial& trial) {
    for (auto& lane : lanes_) {
        lane.sent = lane.received = lane.duplicates = lane.reordered = lane.too_old = 0;
        lane.sequence = Sequence{};
    }
    counts_ = Counts{};
    latency_ = Histogram{};
    arrivals_ = trial.arrivals;
    once_ = trial.once;
    once_at_ = 0;
    started_ = rte_rdtsc();
}

std::uint64_t Engine::send(std::uint64_t count) {
    std::array<rte_mbuf*, kBurst> fresh;
    const auto wanted = static_cast<unsigned>(std::min<std::uint64_t>(count, kBurst));
    if (wanted == 0 || rte_pktmbuf_alloc_bulk(pool_, fresh.data(), wanted) != 0) return 0;
    const std::uint64_t now = rte_rdtsc();
    for (unsigned i = 0; i < wanted; ++i) {
        Schedule::Next next{};
        if (once_ != nullptr)
            next.lane = (*once_)[once_at_++];
        else
            next = schedule_.next();
        Lane& lane = lanes_[next.lane];
        rte_mbuf* packet = fresh[i];
        const std::uint16_t size =
            templates_.write(octets(packet), next.lane, next.share, lane.sent++, now);
        packet->data_len = size;
        packet->pkt_len = size;
        counts_.octets += size;
        Burst& burst = bursts_[static_cast<std::size_t>(templates_.side(next.lane))];
        burst.packets[burst.count++] = packet;
    }
    counts_.sent += wanted;
    for (std::size_t link = 0; link < links_.size(); ++link) flush(link);
    return wanted;
}

void Engine::flush(std::size_t link) {
    Burst& burst = bursts_[link];
    if (burst.count == 0) return;
    const std::uint16_t taken =
        rte_eth_tx_burst(links_[link].device, 0, burst.packets.data(), burst.count);
    if (taken < burst.count) {
        counts_.refused += burst.count - taken;
        rte_pktmbuf_free_bulk(burst.packets.data() + taken, burst.count - taken);
    }
    burst.count = 0;
}

void Engine::receive() {
    for (std::size_t link = 0; link < links_.size(); ++link) {
        std::array<rte_mbuf*, kBurst> packets;
        const std::uint16_t count =
            rte_eth_rx_burst(links_[link].device, 0, packets.data(), kBurst);
        if (count == 0) continue;
        const std::uint64_t now = rte_rdtsc();
        for (std::uint16_t i = 0; i < count; ++i) rte_prefetch0(octets(packets[i]) + 64);
        for (std::uint16_t i = 0; i < count; ++i) take(link, packets[i], now);
        rte_pktmbuf_free_bulk(packets.data(), count);
    }
}

void Engine::take(std::size_t link, rte_mbuf* packet, std::uint64_t now) {
    const auto frame = first_segment(packet);
    const auto found = find_stamp(frame);
    if (!found || found->stamp.lane >= lanes_.size()) return take_other(link, frame);
    if (found->stamp.time < started_) {
        ++counts_.earlier;
        return;
    }
    // Of long frames one in sixteen: a check of every octet would set the generator's limit.
    const bool checked =
        packet->nb_segs == 1 && (frame.size() <= 192 || (found->stamp.sequence & 15) == 0);
    if (checked && !checksums_ok(frame, *found)) {
        ++counts_.corrupt;
        return;
    }
    Lane& lane = lanes_[found->stamp.lane];
    switch (lane.sequence.arrive(found->stamp.sequence)) {
        case Order::duplicate:
            ++lane.duplicates;
            ++counts_.duplicates;
            return;
        case Order::too_old:
            ++lane.too_old;
            ++counts_.too_old;
            return;
        case Order::reordered:
            ++lane.reordered;
            ++counts_.reordered;
            break;
        case Order::next:
            break;
    }
    ++lane.received;
    ++counts_.received;
    latency_.add(now - found->stamp.time);
    if (!arrivals_) return;
    if (!lane.place.is_of(frame, *found, static_cast<Side>(link))) ++counts_.misdelivered;
}

void Engine::take_other(std::size_t link, std::span<const std::uint8_t> frame) {
    if (answer_neighbour(links_[link], pool_, frame))
        ++counts_.answered;
    else
        ++counts_.foreign;
}

void Engine::drain(const Trial& trial) {
    const std::uint64_t hertz = rte_get_tsc_hz();
    const std::uint64_t begun = rte_rdtsc();
    const auto most = static_cast<std::uint64_t>(trial.drain * static_cast<double>(hertz));
    const auto quiet = static_cast<std::uint64_t>(trial.quiet * static_cast<double>(hertz));
    const auto missing = [&] { return counts_.sent - counts_.refused > counts_.received; };
    std::uint64_t last = begun, received = counts_.received;
    for (std::uint64_t now = begun; now - begun < most && now - last < quiet && missing();
         now = rte_rdtsc()) {
        receive();
        if (counts_.received != received) {
            received = counts_.received;
            last = now;
        }
        progress_.received.store(counts_.received, std::memory_order_relaxed);
    }
    // Duplicates may still follow the last packet.
    const std::uint64_t complete = rte_rdtsc();
    while (rte_rdtsc() - complete < hertz / 50) receive();
}

Measured Engine::run(const Trial& trial) {
    begin(trial);
    const auto hertz = static_cast<double>(rte_get_tsc_hz());
    Pacer pacer(trial.rate, hertz, started_);
    const std::uint64_t end = started_ + static_cast<std::uint64_t>(trial.seconds * hertz);
    std::uint64_t left = trial.once != nullptr ? trial.once->size()
                         : trial.packets != 0  ? trial.packets
                                               : UINT64_MAX;
    std::uint64_t now = started_;
    while (left != 0 && now < end && !progress_.stop.load(std::memory_order_relaxed)) {
        receive();
        now = rte_rdtsc();
        const std::uint64_t sent = send(pacer.due(now, std::min<std::uint64_t>(left, kBurst)));
        pacer.sent(sent);
        left -= sent;
        progress_.sent.store(counts_.sent, std::memory_order_relaxed);
        progress_.received.store(counts_.received, std::memory_order_relaxed);
    }
    const double seconds = static_cast<double>(rte_rdtsc() - started_) / hertz;
    drain(trial);
    return sum_up(trial, seconds, pacer);
}

Measured Engine::sum_up(const Trial& trial, double seconds, const Pacer& pacer) const {
    Measured result;
    result.asked = trial;
    result.counts = counts_;
    result.counts.skipped = pacer.skipped();
    result.seconds = seconds;
    result.lanes = static_cast<std::uint32_t>(lanes_.size());
    for (const auto& lane : lanes_) {
        if (lane.sent == 0) continue;
        ++result.lanes_used;
        if (lane.lost() != 0) ++result.lanes_lossy;
        if (lane.received + lane.too_old == 0) ++result.lanes_silent;
    }
    result.latency = latency_;
    result.hertz = static_cast<double>(rte_get_tsc_hz());
    return result;
}

std::vector<std::uint32_t> Engine::open_flows(double rate) {
    constexpr int kRounds = 3;
    constexpr double kPatience = 3600;
    std::vector<std::uint32_t> missing;
    for (std::uint32_t flow = 0; flow < numbering_.flows; ++flow)
        missing.push_back(numbering_.of(flow, Way::forward));
    for (int round = 0; round < kRounds && !missing.empty(); ++round) {
        Trial trial;
        trial.rate = rate;
        trial.seconds = kPatience;
        trial.once = &missing;
        trial.drain = 0.5;
        run(trial);
        if (progress_.stop.load(std::memory_order_relaxed)) break;
        std::vector<std::uint32_t> still;
        for (const std::uint32_t lane : missing)
            if (lanes_[lane].received == 0) still.push_back(lane);
        missing = std::move(still);
    }
    for (auto& lane : missing) lane = numbering_.flow(lane);
    return missing;
}

Result<rte_mempool*> make_send_pool(std::uint16_t device, std::size_t octets) {
    static unsigned made = 0;
    const auto room =
        static_cast<std::uint16_t>(std::max<std::size_t>(2048, octets) + RTE_PKTMBUF_HEADROOM);
    const int node = rte_eth_dev_socket_id(device);
    auto* pool = rte_pktmbuf_pool_create(fmt::format("send_{}", ++made).c_str(), kBuffers, kCache,
                                         0, room, node < 0 ? SOCKET_ID_ANY : node);
    if (pool == nullptr)
        return Error{Error::Code::exhausted,
                     fmt::format("no memory for {} packet buffers of {} octets: {}", kBuffers, room,
                                 rte_strerror(rte_errno)),
                     ""};
    rte_mempool_obj_iter(pool, clear, nullptr);
    return pool;
}

std::array<LinkMacs, 2> link_macs(const std::vector<Link>& links) {
    std::array<LinkMacs, 2> result{};
    for (std::size_t i = 0; i < links.size(); ++i)
        result[i] = {links[i].responder.own(), links[i].responder.gateway().value_or(MacAddress{})};
    return result;
}

bool answer_neighbour(Link& link, rte_mempool* pool, std::span<const std::uint8_t> frame) {
    std::array<std::uint8_t, kAnswerOctets> out;
    const std::size_t size = link.responder.answer(frame, out);
    return size != 0 && send_one(link.device, pool, std::span(out).first(size));
}

bool resolve(Link& link, rte_mempool* pool, double seconds) {
    const auto hertz = static_cast<double>(rte_get_tsc_hz());
    const std::uint64_t end = rte_rdtsc() + static_cast<std::uint64_t>(seconds * hertz);
    std::uint64_t ask_at = 0;
    while (!link.responder.gateway() && rte_rdtsc() < end) {
        std::array<std::uint8_t, kAnswerOctets> out;
        if (rte_rdtsc() >= ask_at) {
            const std::size_t size = link.responder.question(out);
            send_one(link.device, pool, std::span(out).first(size));
            ask_at = rte_rdtsc() + static_cast<std::uint64_t>(hertz / 5);
        }
        std::array<rte_mbuf*, 32> packets;
        const std::uint16_t count =
            rte_eth_rx_burst(link.device, 0, packets.data(), packets.size());
        for (std::uint16_t i = 0; i < count; ++i) {
            const std::size_t size = link.responder.answer(first_segment(packets[i]), out);
            if (size != 0) send_one(link.device, pool, std::span(out).first(size));
        }
        if (count != 0) rte_pktmbuf_free_bulk(packets.data(), count);
    }
    return link.responder.gateway().has_value();
}

}  // namespace sluice::pktgen
