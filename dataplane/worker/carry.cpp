// SPDX-License-Identifier: Apache-2.0
// Look up and act: what every packet of a connection goes through.
#include "dataplane/wire/checksum.hpp"
#include "dataplane/worker/batch.hpp"
#include "dataplane/worker/stages.hpp"

namespace sluice::worker {

namespace {

using policy::Adjacency;
using policy::Source;
using session::FlowIndex;

// What may be unusual about a hit; examine() has the answers, in this order. A host's first
// VTEP is the usual one; whether another is its too, examine() finds out.
[[gnu::always_inline]] inline bool unusual_source(const std::uint8_t* frame,
                                                  const wire::Headers& headers,
                                                  const Source& source) {
    if (!headers.has(wire::kTunnelled)) return false;
    const std::uint8_t* ip = frame + headers.outer_ip;
    const std::uint8_t* known = source.vteps[0].bytes.data();
    std::uint64_t odd = (wire::raw64(frame + headers.l2 + wire::ethernet::kSource) ^
                         wire::raw64(source.mac.bytes.data())) &
                        wire::kMacMask;
    if (!headers.has(wire::kOuterV6)) [[likely]] {
        // An IPv4 VTEP as it lies in an IpAddress (RFC 4291 section 2.5.5.2).
        odd |= wire::raw64(known) |
               (wire::raw64(known + 8) ^
                (std::uint64_t{wire::raw32(ip + wire::ipv4::kSource)} << 32 | 0xffff0000U));
    } else {
        odd |= (wire::raw64(known) ^ wire::raw64(ip + wire::ipv6::kSource)) |
               (wire::raw64(known + 8) ^ wire::raw64(ip + wire::ipv6::kSource + 8));
    }
    return odd != 0;
}

// 0 or 1: the tests of a hit are joined without a branch between them.
[[gnu::always_inline]] inline unsigned stale(const Worker::State& state,
                                             const session::FlowState& flow,
                                             const Adjacency& adjacency, const Source& source) {
    const std::uint32_t generation = flow.generation.load(std::memory_order_relaxed);
    const auto& changed = state.shared.changed;
    return unsigned{generation < changed[source.zone.value].load(std::memory_order_acquire)} |
           unsigned{generation < changed[adjacency.zone.value].load(std::memory_order_acquire)};
}

// A tenant's packet on the uplink, with its own address.
template <class Family>
bool private_leaves(const wire::Headers& headers, std::uint32_t target,
                    const Adjacency& adjacency) {
    return std::is_same_v<Family, session::Ipv4> && adjacency.kind == Adjacency::Kind::ethernet &&
           headers.has(wire::kTunnelled) && (target & session::kTranslated) == 0;
}

constexpr auto kTcp = static_cast<std::uint8_t>(Protocol::tcp);

template <class Flow>
[[gnu::always_inline]] inline void note_progress(const std::uint8_t* frame,
                                                 const wire::Headers& headers, Flow& flow) {
    const std::uint8_t* tcp = frame + headers.l4;
    const std::uint32_t header = headers.l4 - headers.l3 + (std::uint32_t{tcp[12]} >> 4 << 2);
    const std::uint32_t opens_or_closes =
        (headers.tcp_flags & session::kSyn) >> 1 | (headers.tcp_flags & session::kFin);
    session::note_mark(flow.state, flow.tcp.end, session::kEndSeen,
                       wire::load32(tcp + wire::tcp::kSequence).host() + headers.ip_length -
                           header + opens_or_closes);
    if ((headers.tcp_flags & session::kAck) != 0)
        session::note_mark(flow.state, flow.tcp.acknowledged, session::kAcknowledgedSeen,
                           wire::load32(tcp + wire::tcp::kAcknowledgement).host());
}

// The mbuf begins where its new header does, and ends where the inner packet does (an inner
// frame may have been padded).
[[gnu::always_inline]] inline void trim(rte_mbuf* mbuf, std::uint32_t l3, std::uint32_t header,
                                        std::uint32_t ip_length) {
    if (l3 != header) [[unlikely]] {
        const auto start = static_cast<std::int32_t>(l3) - static_cast<std::int32_t>(header);
        mbuf->data_off = static_cast<std::uint16_t>(mbuf->data_off + start);
        mbuf->data_len = static_cast<std::uint16_t>(mbuf->data_len - start);
        mbuf->pkt_len -= static_cast<std::uint32_t>(start);
    }
    const std::uint32_t excess = mbuf->pkt_len - header - ip_length;
    if (excess != 0) [[unlikely]]
        rte_pktmbuf_trim(mbuf, static_cast<std::uint16_t>(excess));
}

[[gnu::always_inline]] inline void finish(Worker::State& state, rte_mbuf* mbuf, std::uint32_t l3,
                                          const Adjacency& adjacency, const OuterFacts& facts) {
    std::uint8_t* ip = bytes_of(mbuf) + l3;
    if (adjacency.kind == Adjacency::Kind::vxlan_ipv4) [[likely]] {
        write_vxlan_ipv4(ip, adjacency, facts);
        trim(mbuf, l3, kVxlanIpv4, facts.ip_length);
    } else if (adjacency.kind == Adjacency::Kind::vxlan_ipv6) {
        write_vxlan_ipv6(ip, adjacency, facts);
        trim(mbuf, l3, kVxlanIpv6, facts.ip_length);
    } else {
        write_uplink(ip, adjacency);
        trim(mbuf, l3, kInnerEthernet, facts.ip_length);
    }
    send(state, adjacency.port, mbuf);
}

template <class Family>
[[gnu::always_inline]] inline void act(Worker::State& state, PortId port, rte_mbuf* mbuf,
                                       const wire::Headers& headers, std::uint64_t hash,
                                       FlowIndex index, const Adjacency* adjacency,
                                       const Source& source) {
    auto& sessions = table<Family>(state);
    auto& flow = sessions.flow(index);
    std::uint8_t* frame = bytes_of(mbuf);
    std::uint8_t traffic_class = headers.traffic_class;

    const std::uint32_t target = flow.state.target.load(std::memory_order_relaxed);
    const unsigned unusual =
        unsigned{unusual_source(frame, headers, source)} |
        stale(state, flow.state, *adjacency, source) |
        unsigned{headers.ttl <= spent_ttl(*adjacency)} | (headers.ip_length > adjacency->mtu) |
        ((headers.outer_ecn & 1) != 0) |
        ((headers.protocol == kTcp) & !session::is_ordinary(headers.tcp_flags)) |
        ((target & (session::kTracked | session::kMetered)) != 0) |
        (adjacency->kind == Adjacency::Kind::unreachable) |
        unsigned{private_leaves<Family>(headers, target, *adjacency)};
    bool believed = true;
    if (unusual != 0) [[unlikely]] {
        adjacency = examine<Family>(state, {mbuf, headers, port}, index, source, *adjacency,
                                    traffic_class, believed);
        if (adjacency == nullptr) return;
    }

    flow.state.last_seen.store(state.tick.value, std::memory_order_relaxed);
    session::count(flow.state, sessions.connection(session::connection_of(index)),
                   session::is_reverse(index), headers.ip_length);
    if (headers.protocol == kTcp && believed) note_progress(frame, headers, flow);

    std::uint8_t* ip = frame + headers.l3;
    if constexpr (std::is_same_v<Family, session::Ipv4>) {
        if (!adjacency->bridged) decrement_ttl_ipv4(ip);
        if ((target & session::kTranslated) != 0) {
            translate_ipv4(ip, frame + headers.l4, headers.protocol, flow.rewrite);
            if ((target & session::kSharedSource) != 0) [[unlikely]]
                renumber(state, ip);
        }
    } else {
        if (!adjacency->bridged) --ip[wire::ipv6::kHopLimit];
    }
    const OuterFacts outer{headers.ip_length, static_cast<std::uint16_t>(hash >> 40),
                           traffic_class};
    if (headers.ip_length > adjacency->mtu) [[unlikely]]
        return send_fragments(state, {mbuf, headers, port}, *adjacency, outer);
    finish(state, mbuf, headers.l3, *adjacency, outer);
}

}  // namespace

void renumber(Worker::State& state, std::uint8_t* ip) {
    namespace v4 = wire::ipv4;
    const std::uint16_t word = wire::load16(ip + v4::kFragment).host();
    const bool fragment = (word & (v4::kMoreFragments | v4::kOffsetMask)) != 0;
    if (!fragment && (word & v4::kDontFragment) != 0) return;
    std::uint16_t number = fragment ? state.identification : std::uint16_t{0};
    if (number == 0)
        number = state.shared.sessions->identifications.next(
            wire::load32(ip + v4::kSource), wire::load32(ip + v4::kDestination), ip[v4::kProtocol]);
    if (fragment) state.identification = number;
    const be16 before = wire::load16(ip + v4::kIdentification);
    wire::store(ip + v4::kIdentification, be16{number});
    add_to_field(ip + v4::kChecksum,
                 field_delta(wire::ChecksumDelta{}.replace(before, be16{number}).folded()));
}

void encapsulate(Worker::State& state, rte_mbuf* mbuf, std::uint32_t l3, const Adjacency& adjacency,
                 const OuterFacts& facts) {
    finish(state, mbuf, l3, adjacency, facts);
}

template <class Family>
void carry(Worker::State& state, PortId port, rte_mbuf* mbuf, const wire::Headers& headers,
           std::uint64_t hash, FlowIndex flow, const Adjacency& adjacency, const Source& source) {
    act<Family>(state, port, mbuf, headers, hash, flow, &adjacency, source);
}

namespace {

// `headers_of`: of a packet of the batch, by its number.
template <class Family, class HeadersOf>
[[gnu::always_inline]] inline void run_batch(Worker::State& state, PortId port,
                                             Batch<Family>& batch, HeadersOf headers_of) {
    auto& sessions = table<Family>(state);
    const policy::AdjacencyTable& adjacencies = *state.shared.adjacencies;
    const policy::SourceTable& sources = *state.shared.sources;

    // The bucket is here: a tag leads to a flow.
    for (unsigned i = 0; i < batch.count; ++i) {
        batch.flows[i] = sessions.candidate(batch.hashes[i]);
        if (batch.flows[i] != session::kNoFlow) __builtin_prefetch(&sessions.flow(batch.flows[i]));
    }
    // The flow is here: its key decides, and it names its records.
    for (unsigned i = 0; i < batch.count; ++i) {
        FlowIndex& flow = batch.flows[i];
        if (flow == session::kNoFlow || !(sessions.flow(flow).key == batch.keys[i]))
            flow = sessions.find(batch.keys[i], batch.hashes[i]);
        if (flow == session::kNoFlow) {
            state.misses[state.miss_count++] = {batch.mbufs[i], headers_of(i), port};
            continue;
        }
        const session::FlowState& words = sessions.flow(flow).state;
        batch.adjacencies[i] = &adjacencies[words.adjacency()];
        batch.sources[i] = &sources[words.source_index()];
        __builtin_prefetch(batch.adjacencies[i]);
        __builtin_prefetch(reinterpret_cast<const char*>(batch.adjacencies[i]) + 64);
        __builtin_prefetch(batch.sources[i]);
    }
    // Everything is here.
    for (unsigned i = 0; i < batch.count; ++i)
        if (batch.flows[i] != session::kNoFlow)
            act<Family>(state, port, batch.mbufs[i], headers_of(i), batch.hashes[i], batch.flows[i],
                        batch.adjacencies[i], *batch.sources[i]);
}

template <wire::Shape shape, class Family>
void run_common(Worker::State& state, PortId port, Batch<Family>& batch) {
    run_batch(
        state, port, batch, [&](unsigned i) __attribute__((always_inline)) {
            return wire::common_headers<shape>(bytes_of(batch.mbufs[i]));
        });
}

template <class Family>
void run_general(Worker::State& state, PortId port, Batch<Family>& batch) {
    run_batch(
        state, port,
        batch, [&](unsigned i) __attribute__((always_inline)) { return batch.headers[i]; });
}

}  // namespace

void run_batches(Worker::State& state, PortId port, Batches& batches) {
    if (batches.overlay_ipv4.count != 0)
        run_common<wire::Shape::overlay_ipv4>(state, port, batches.overlay_ipv4);
    if (batches.overlay_ipv6.count != 0)
        run_common<wire::Shape::overlay_ipv6>(state, port, batches.overlay_ipv6);
    if (batches.uplink_ipv4.count != 0)
        run_common<wire::Shape::uplink_ipv4>(state, port, batches.uplink_ipv4);
    if (batches.ipv4.count != 0) run_general(state, port, batches.ipv4);
    if (batches.ipv6.count != 0) run_general(state, port, batches.ipv6);
}

template void carry<session::Ipv4>(Worker::State&, PortId, rte_mbuf*, const wire::Headers&,
                                   std::uint64_t, FlowIndex, const Adjacency&, const Source&);
template void carry<session::Ipv6>(Worker::State&, PortId, rte_mbuf*, const wire::Headers&,
                                   std::uint64_t, FlowIndex, const Adjacency&, const Source&);

}  // namespace sluice::worker
