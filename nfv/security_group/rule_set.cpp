// SPDX-License-Identifier: Apache-2.0
#include "nfv/security_group/rule_set.hpp"

#include <immintrin.h>

#include <algorithm>
#include <iterator>
#include <tuple>

namespace sluice::nfv {
namespace {

constexpr std::uint8_t number(Protocol protocol) {
    return static_cast<std::uint8_t>(protocol);
}

std::uint16_t priority_of(const RuleRow& row) {
    return wire_priority(row.priority, row.allow);
}

// A total order of different rules, the one that wins first.
bool better(const RuleRow& a, const RuleRow& b) {
    const auto left = priority_of(a), right = priority_of(b);
    if (left != right) return left > right;
    const auto rest = [](const RuleRow& row) {
        return std::tie(row.cookie, row.family, row.protocol, row.port_min, row.port_max,
                        row.icmp_type, row.icmp_code, row.remote_prefix, row.remote_group);
    };
    return rest(a) < rest(b);
}

__m256i load(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

// All ones in each 16-bit lane whose range contains the value.
__m256i in_range(const std::uint16_t* first, const std::uint16_t* span, __m256i value) {
    const __m256i distance = _mm256_sub_epi16(value, load(first));
    return _mm256_cmpeq_epi16(_mm256_min_epu16(distance, load(span)), distance);
}

// The same of 32 rules, a bit each, in their order.
std::uint32_t ranges(const std::uint16_t* first, const std::uint16_t* span, std::uint16_t value) {
    const __m256i wanted = _mm256_set1_epi16(static_cast<std::int16_t>(value));
    // Packing works on each half alone; the permutation puts the quarters back in order.
    const __m256i packed =
        _mm256_packs_epi16(in_range(first, span, wanted), in_range(first + 16, span + 16, wanted));
    return static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_permute4x64_epi64(packed, 0xd8)));
}

std::uint32_t blocks(const std::uint32_t* address, const std::uint32_t* mask,
                     std::uint32_t remote) {
    const __m256i wanted = _mm256_set1_epi32(static_cast<std::int32_t>(remote));
    std::uint32_t result = 0;
    for (unsigned i = 0; i < 32; i += 8) {
        const __m256i differs =
            _mm256_and_si256(_mm256_xor_si256(wanted, load(address + i)), load(mask + i));
        const __m256i equal = _mm256_cmpeq_epi32(differs, _mm256_setzero_si256());
        result |= static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(equal))) << i;
    }
    return result;
}

}  // namespace

RuleSet::Kind RuleSet::kind_of(std::uint8_t protocol, Family family) {
    if (protocol == number(Protocol::tcp)) return Kind::tcp;
    if (protocol == number(Protocol::udp)) return Kind::udp;
    if (protocol == number(family == Family::ipv4 ? Protocol::icmp : Protocol::icmpv6))
        return Kind::icmp;
    return Kind::other;
}

RuleSet::RuleSet(std::vector<RuleRow> rows) : rows_(std::move(rows)) {
    std::sort(rows_.begin(), rows_.end(), better);
    lay_out();
}

RuleSet RuleSet::with(std::vector<RuleRow> removed, std::vector<RuleRow> added) const {
    std::sort(removed.begin(), removed.end(), better);
    std::sort(added.begin(), added.end(), better);
    std::vector<RuleRow> kept;
    kept.reserve(rows_.size());
    std::set_difference(rows_.begin(), rows_.end(), removed.begin(), removed.end(),
                        std::back_inserter(kept), better);
    RuleSet result;
    result.rows_.reserve(kept.size() + added.size());
    std::merge(kept.begin(), kept.end(), added.begin(), added.end(),
               std::back_inserter(result.rows_), better);
    result.lay_out();
    return result;
}

void RuleSet::lay_out() {
    for (std::size_t family = 0; family < 2; ++family)
        for (std::size_t kind = 0; kind < kKinds; ++kind) {
            lists_[family][kind].kind = static_cast<Kind>(kind);
            lists_[family][kind].ipv4 = family == 0;
        }
    for (const RuleRow& row : rows_) {
        auto& lists = lists_[row.family == Family::ipv4 ? 0 : 1];
        if (row.protocol)
            add(lists[static_cast<std::size_t>(kind_of(*row.protocol, row.family))], row);
        else
            for (List& list : lists) add(list, row);
    }
    for (auto& lists : lists_)
        for (List& list : lists) {
            const std::size_t padded = (list.count + kStep - 1) / kStep * kStep;
            list.first.resize(padded);
            list.span.resize(padded);
            if (!list.ipv4) continue;
            list.address.resize(padded);
            list.mask.resize(padded);
        }
}

void RuleSet::add(List& list, const RuleRow& row) {
    Rest rest;
    rest.cookie = row.cookie;
    rest.allow = row.allow;
    rest.group = row.remote_group.value_or(GroupId{});
    std::uint16_t first = 0, last = 65535;
    switch (list.kind) {
        case Kind::tcp:
        case Kind::udp:
            first = row.port_min;
            last = row.port_max;
            break;
        case Kind::icmp:
            if (row.icmp_type) {
                first = static_cast<std::uint16_t>(*row.icmp_type << 8 | row.icmp_code.value_or(0));
                last =
                    static_cast<std::uint16_t>(*row.icmp_type << 8 | row.icmp_code.value_or(0xff));
            }
            rest.has_icmp_code = row.icmp_code.has_value();
            rest.icmp_code = row.icmp_code.value_or(0);
            break;
        default:
            if (row.protocol) first = last = *row.protocol;
            rest.has_ports = row.port_min != 0 || row.port_max != 65535;
            rest.port_min = row.port_min;
            rest.port_max = row.port_max;
    }
    const Prefix remote = row.remote_prefix.value_or(Prefix::any(row.family));
    if (list.ipv4) {
        const unsigned length = remote.family_length();
        list.address.push_back(remote.address.to_v4().host());
        list.mask.push_back(length == 0 ? 0 : ~0U << (32 - length));
    } else {
        rest.prefix = remote.address;
        rest.prefix_length = remote.length;
    }
    list.first.push_back(first);
    list.span.push_back(static_cast<std::uint16_t>(last - first));
    list.priority.push_back(priority_of(row));
    list.rest.push_back(rest);
    ++list.count;
}

std::uint32_t RuleSet::fitting(const List& list, std::uint32_t base, std::uint16_t value,
                               const IpAddress& remote) {
    std::uint32_t fits = ranges(list.first.data() + base, list.span.data() + base, value);
    if (list.count - base < kStep) fits &= (1U << (list.count - base)) - 1;
    if (fits != 0 && list.ipv4)
        fits &= blocks(list.address.data() + base, list.mask.data() + base, remote.to_v4().host());
    return fits;
}

}  // namespace sluice::nfv
