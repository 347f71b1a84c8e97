// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/limits.hpp"

#include <algorithm>
#include <bit>

namespace sluice::session {

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kCountMask = 0xffffffffU;

// An eighth of a second's worth at once, and not less than 16.
bool conforms(RateWord& word, std::uint32_t per_second, std::uint64_t now) {
    if (per_second == 0) return true;
    const std::uint64_t interval = kSecond / per_second;
    return word.take(now, interval, std::max(kSecond / 8, interval * 15));
}

std::uint32_t first_set(std::uint32_t own, std::uint32_t otherwise) {
    return own != 0 ? own : otherwise;
}
std::uint32_t share(std::uint32_t eighths, std::uint32_t free) {
    if (eighths == 0) return ~0U;
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(std::uint64_t{free} * eighths / 8, ~0U));
}
std::uint32_t lower(std::uint32_t bound, std::uint32_t of_share) {
    return bound == 0 ? of_share : std::min(bound, of_share);
}

// `bound`: absolute, 0 none, over both families; shares are of this family.
bool exceeds(std::uint32_t bound, std::uint32_t all, std::uint32_t of_share, std::uint32_t here) {
    return (bound != 0 && all >= bound) || here >= of_share;
}

}  // namespace

bool RateWord::take(std::uint64_t now, std::uint64_t interval, std::uint64_t tolerance) {
    std::uint64_t next = next_.load(kRelaxed);
    while (true) {
        const std::uint64_t from = std::max(next, now);
        if (from - now > tolerance) return false;
        if (next_.compare_exchange_weak(next, from + interval, kRelaxed)) return true;
    }
}

LimitDefaults LimitDefaults::of(std::uint32_t capacity, unsigned workers) {
    // A small table is no reason to be slow.
    constexpr std::uint32_t kLeast = 10'000, kWalksOfWorker = 500'000;
    LimitDefaults result;
    result.vpc.per_second =
        std::max(kLeast, std::min(capacity / 4, kWalksOfWorker * std::max(1U, workers)));
    result.endpoint.per_second = result.vpc.per_second / 4;
    return result;
}

Limits::Limits(const Allocate& allocate, const LimitDefaults& defaults, std::uint32_t zones,
               std::uint32_t endpoints)
    : defaults_(defaults),
      mask_(std::bit_ceil(std::max<std::size_t>(endpoints, kWays) / kWays) - 1),
      zones_(allocate, zones),
      sets_(allocate, mask_ + 1),
      outside_(allocate, kOutside) {}

void Limits::Bounds::store(const SessionLimits& limits) {
    connections.store(limits.connections, kRelaxed);
    half_open.store(limits.half_open, kRelaxed);
    per_second.store(limits.per_second, kRelaxed);
}
SessionLimits Limits::Bounds::load() const {
    return {connections.load(kRelaxed), half_open.load(kRelaxed), per_second.load(kRelaxed)};
}

void Limits::set(std::uint32_t zone, const VpcLimits& limits) {
    zones_[zone].vpc.store(limits.vpc);
    zones_[zone].endpoint.store(limits.endpoint);
}

VpcLimits Limits::own(std::uint32_t zone) const {
    return {zones_[zone].vpc.load(), zones_[zone].endpoint.load()};
}

std::size_t Limits::set_of(EndpointId endpoint) const {
    return (endpoint.value * 0x9e3779b97f4a7c15ULL >> 32) & mask_;
}

// The endpoint's place, or one that it may have; none when eight others have connections.
Limits::Place Limits::find(EndpointId endpoint) const {
    Set& set = sets_[set_of(endpoint)];
    Place vacant;
    for (std::size_t way = 0; way < kWays; ++way) {
        const std::uint64_t owner = set.owner[way].load(kRelaxed);
        if (owner >> 32 == endpoint.value) return {&set, way};
        if ((owner & kCountMask) == 0 && vacant.set == nullptr) vacant = {&set, way};
    }
    return vacant;
}

DropReason Limits::charge(std::uint32_t number, EndpointId endpoint, std::uint64_t now) {
    Zone& zone = zones_[number];
    const std::uint32_t vpc =
        first_set(zone.vpc.per_second.load(kRelaxed), defaults_.vpc.per_second);
    const std::uint32_t each =
        first_set(zone.endpoint.per_second.load(kRelaxed), defaults_.endpoint.per_second);
    zone.recent.note(now);
    if (!endpoint)
        return conforms(zone.unknown, each, now) ? DropReason::none
                                                 : DropReason::vpc_connection_rate;
    if (const Place place = find(endpoint); place.set != nullptr) {
        auto& owner = place.set->owner[place.way];
        std::uint64_t before = owner.load(kRelaxed);
        // Whoever takes a place takes what is left of its rate, too.
        if (before >> 32 != endpoint.value && (before & kCountMask) == 0 &&
            owner.compare_exchange_strong(before, std::uint64_t{endpoint.value} << 32, kRelaxed))
            place.set->forget(place.way);
        place.set->recent[place.way].note(now);
        if (!conforms(place.set->rate[place.way], each, now)) {
            place.set->refused[2][place.way].fetch_add(1, kRelaxed);
            return DropReason::endpoint_connection_rate;
        }
    }
    return conforms(zone.known, vpc, now) ? DropReason::none : DropReason::vpc_connection_rate;
}

DropReason Limits::charge_outside(std::uint64_t address, std::uint32_t number, std::uint64_t now) {
    Outside& cell = outside_[address % kOutside];
    Zone& zone = zones_[number];
    const std::uint32_t each =
        first_set(zone.endpoint.per_second.load(kRelaxed), defaults_.endpoint.per_second);
    if (!conforms(cell.rate, each, now)) return DropReason::endpoint_connection_rate;
    if (number == 0) return DropReason::none;
    zone.recent.note(now);
    const std::uint32_t vpc =
        first_set(zone.vpc.per_second.load(kRelaxed), defaults_.vpc.per_second);
    return conforms(zone.outside, vpc, now) ? DropReason::none : DropReason::vpc_connection_rate;
}

Limits::OutsideOwner Limits::outside_owner(std::uint64_t address) const {
    const std::uint64_t owner = outside_[address % kOutside].owner.load(kRelaxed);
    if (owner >> 48 != address >> 48) return {};
    return {static_cast<std::uint32_t>(owner >> 32 & 0xffff),
            Generation{static_cast<std::uint32_t>(owner)}};
}

void Limits::learn(std::uint64_t address, const OutsideOwner& owner) {
    if (owner.zone > 0xffff) return;
    auto& word = outside_[address % kOutside].owner;
    const std::uint64_t wanted =
        address >> 48 << 48 | std::uint64_t{owner.zone} << 32 | owner.generation.value;
    if (word.load(kRelaxed) != wanted) word.store(wanted, kRelaxed);
}

SessionLimits Limits::vpc_limits(std::uint32_t zone, std::uint32_t free) const {
    const SessionLimits own = zones_[zone].vpc.load();
    return {lower(first_set(own.connections, defaults_.vpc.connections),
                  share(defaults_.vpc_connections, free)),
            lower(first_set(own.half_open, defaults_.vpc.half_open),
                  share(defaults_.vpc_half_open, free)),
            first_set(own.per_second, defaults_.vpc.per_second)};
}

SessionLimits Limits::endpoint_limits(std::uint32_t zone, std::uint32_t free) const {
    const SessionLimits own = zones_[zone].endpoint.load();
    return {lower(first_set(own.connections, defaults_.endpoint.connections),
                  share(defaults_.endpoint_connections, free)),
            lower(first_set(own.half_open, defaults_.endpoint.half_open),
                  share(defaults_.endpoint_half_open, free)),
            first_set(own.per_second, defaults_.endpoint.per_second)};
}

DropReason Limits::check(const Claim& claim, std::uint32_t free) const {
    const Zone& zone = zones_[claim.zone];
    const auto here = [&](const auto& counts) { return counts[claim.family].load(kRelaxed); };
    const auto all = [](const auto& counts) {
        return counts[0].load(kRelaxed) + counts[1].load(kRelaxed);
    };
    const auto own = [](const std::atomic<std::uint32_t>& set, std::uint32_t otherwise) {
        return first_set(set.load(kRelaxed), otherwise);
    };
    if (claim.endpoint) {
        const Place place = find(claim.endpoint);
        if (place.set != nullptr) {
            const std::uint64_t owner = place.set->owner[place.way].load(kRelaxed);
            const auto connections = owner >> 32 == claim.endpoint.value
                                         ? static_cast<std::uint32_t>(owner & kCountMask)
                                         : 0;
            // Shares are of the family's table: many connections of one leave room for the other's.
            const std::uint32_t ipv6 =
                std::min(connections, place.set->ipv6[place.way].load(kRelaxed));
            if (exceeds(own(zone.endpoint.connections, defaults_.endpoint.connections), connections,
                        share(defaults_.endpoint_connections, free),
                        claim.family == 0 ? connections - ipv6 : ipv6))
                return DropReason::endpoint_connections;
            const std::array half_open = {place.set->half_open[0][place.way].load(kRelaxed),
                                          place.set->half_open[1][place.way].load(kRelaxed)};
            if (claim.half_open &&
                exceeds(own(zone.endpoint.half_open, defaults_.endpoint.half_open),
                        half_open[0] + half_open[1], share(defaults_.endpoint_half_open, free),
                        half_open[claim.family]))
                return DropReason::endpoint_half_open;
        }
    }
    if (exceeds(own(zone.vpc.connections, defaults_.vpc.connections), all(zone.connections),
                share(defaults_.vpc_connections, free), here(zone.connections)))
        return DropReason::vpc_connections;
    if (claim.half_open &&
        exceeds(own(zone.vpc.half_open, defaults_.vpc.half_open), all(zone.half_open),
                share(defaults_.vpc_half_open, free), here(zone.half_open)))
        return DropReason::vpc_half_open;
    return DropReason::none;
}

bool Limits::take(const Claim& claim) {
    Zone& zone = zones_[claim.zone];
    zone.connections[claim.family].fetch_add(1, kRelaxed);
    if (claim.half_open) zone.half_open[claim.family].fetch_add(1, kRelaxed);
    if (!claim.endpoint) return false;
    // Another worker may be taking the same place for somebody else.
    for (int attempt = 0; attempt < 4; ++attempt) {
        const Place place = find(claim.endpoint);
        if (place.set == nullptr) return false;
        auto& owner = place.set->owner[place.way];
        std::uint64_t before = owner.load(kRelaxed);
        const bool mine = before >> 32 == claim.endpoint.value;
        if (!mine && (before & kCountMask) != 0) continue;
        const std::uint64_t after =
            mine ? before + 1 : (std::uint64_t{claim.endpoint.value} << 32 | 1);
        if (!owner.compare_exchange_strong(before, after, std::memory_order_acq_rel, kRelaxed))
            continue;
        if (!mine) place.set->forget(place.way);
        if (claim.family == 1) place.set->ipv6[place.way].fetch_add(1, kRelaxed);
        if (claim.half_open) place.set->half_open[claim.family][place.way].fetch_add(1, kRelaxed);
        return true;
    }
    return false;
}

// Two workers that see different places become vacant may give one endpoint two of them for a
// while: whatever is taken back comes from one that has it.
void Limits::take_back(const Set& set, Set::Counts& counts, EndpointId endpoint) {
    for (std::size_t way = 0; way < kWays; ++way) {
        if (set.owner[way].load(kRelaxed) >> 32 != endpoint.value) continue;
        std::uint32_t count = counts[way].load(kRelaxed);
        while (count != 0)
            if (counts[way].compare_exchange_weak(count, count - 1, kRelaxed)) return;
    }
}

void Limits::answered(const Claim& claim, bool endpoint_counts) {
    zones_[claim.zone].half_open[claim.family].fetch_sub(1, kRelaxed);
    if (!endpoint_counts) return;
    Set& set = sets_[set_of(claim.endpoint)];
    take_back(set, set.half_open[claim.family], claim.endpoint);
}

void Limits::release(const Claim& claim, bool endpoint_counts) {
    Zone& zone = zones_[claim.zone];
    zone.connections[claim.family].fetch_sub(1, kRelaxed);
    if (claim.half_open) zone.half_open[claim.family].fetch_sub(1, kRelaxed);
    if (!endpoint_counts) return;
    Set& set = sets_[set_of(claim.endpoint)];
    if (claim.half_open) take_back(set, set.half_open[claim.family], claim.endpoint);
    if (claim.family == 1) take_back(set, set.ipv6, claim.endpoint);
    for (auto& owner : set.owner) {
        std::uint64_t before = owner.load(kRelaxed);
        while (before >> 32 == claim.endpoint.value && (before & kCountMask) != 0)
            if (owner.compare_exchange_weak(before, before - 1, std::memory_order_acq_rel,
                                            kRelaxed))
                return;
    }
}

void Limits::refuse(EndpointId endpoint, DropReason reason) {
    const bool open = reason == DropReason::endpoint_connections;
    if (!open && reason != DropReason::endpoint_half_open) return;
    const Place place = find(endpoint);
    if (place.set != nullptr && place.set->owner[place.way].load(kRelaxed) >> 32 == endpoint.value)
        place.set->refused[open ? 0 : 1][place.way].fetch_add(1, kRelaxed);
}

void Limits::Set::forget(std::size_t way) {
    for (Counts& counts : refused) counts[way].store(0, kRelaxed);
}

Limits::Use Limits::use(std::uint32_t number, std::uint64_t now) const {
    const Zone& zone = zones_[number];
    Use result;
    for (std::size_t family = 0; family < 2; ++family) {
        result.connections[family] = zone.connections[family].load(kRelaxed);
        result.half_open[family] = zone.half_open[family].load(kRelaxed);
    }
    result.per_second = zone.recent.per_second(now);
    return result;
}

Limits::Use Limits::use(EndpointId endpoint, std::uint64_t now) const {
    Use result;
    const Place place = find(endpoint);
    if (place.set == nullptr) return result;
    const std::uint64_t owner = place.set->owner[place.way].load(kRelaxed);
    if (owner >> 32 != endpoint.value) return result;
    const auto all = static_cast<std::uint32_t>(owner & kCountMask);
    result.connections[1] = std::min(all, place.set->ipv6[place.way].load(kRelaxed));
    result.connections[0] = all - result.connections[1];
    for (std::size_t family = 0; family < 2; ++family)
        result.half_open[family] = place.set->half_open[family][place.way].load(kRelaxed);
    result.per_second = place.set->recent[place.way].per_second(now);
    return result;
}

Limits::Refused Limits::refused(EndpointId endpoint) const {
    const Place place = find(endpoint);
    if (place.set == nullptr || place.set->owner[place.way].load(kRelaxed) >> 32 != endpoint.value)
        return {};
    const auto& counts = place.set->refused;
    return {counts[0][place.way].load(kRelaxed), counts[1][place.way].load(kRelaxed),
            counts[2][place.way].load(kRelaxed)};
}

}  // namespace sluice::session
