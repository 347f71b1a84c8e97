// SPDX-License-Identifier: Apache-2.0
#include "dataplane/policy/routes.hpp"

#include <algorithm>
#include <tuple>

namespace sluice::policy {
namespace {

using openflow::RouteRow;

template <class Address>
Address number(const IpAddress& address);
template <>
std::uint32_t number(const IpAddress& address) {
    return address.to_v4().host();
}
template <>
Address128 number(const IpAddress& address) {
    const auto value = openflow::U128::of(address);
    return Address128{value.high} << 64 | value.low;
}

// The last address of a block; `bits` are those below the prefix.
template <class Address>
Address last_of(Address first, unsigned bits) {
    if (bits >= sizeof(Address) * 8) return static_cast<Address>(~Address{0});
    return first | ((Address{1} << bits) - 1);
}

bool in_order(const RouteRow& a, const RouteRow& b) {
    return std::tuple(a.destination.family(), a.destination.address, a.destination.length) <
           std::tuple(b.destination.family(), b.destination.address, b.destination.length);
}

}  // namespace

RouteTable::RouteTable(std::vector<RouteRow> rows) : rows_(std::move(rows)) {
    std::sort(rows_.begin(), rows_.end(), in_order);
    build(ipv4_, Family::ipv4);
    build(ipv6_, Family::ipv6);
}

template <class Address>
void RouteTable::Intervals<Address>::begin(Address start, std::uint32_t row) {
    if (!starts.empty() && starts.back() == start)
        rows.back() = row;
    else {
        starts.push_back(start);
        rows.push_back(row);
    }
}

template <class Address>
std::uint32_t RouteTable::Intervals<Address>::at(Address address) const {
    const auto after = std::upper_bound(starts.begin(), starts.end(), address);
    return after == starts.begin() ? kNone
                                   : rows[static_cast<std::size_t>(after - starts.begin()) - 1];
}

// In order of address and length a block comes before those inside it: the stack holds the blocks
// that are open at the present address, the innermost last.
template <class Address>
void RouteTable::build(Intervals<Address>& intervals, Family family) {
    struct Open {
        Address last;
        std::uint32_t row;
    };
    std::vector<Open> open;
    const auto close_until = [&](Address start, bool all) {
        while (!open.empty() && (all || open.back().last < start)) {
            const Address last = open.back().last;
            open.pop_back();
            if (last == static_cast<Address>(~Address{0})) continue;  // nothing comes behind it
            intervals.begin(last + 1, open.empty() ? kNone : open.back().row);
        }
    };
    for (std::uint32_t i = 0; i < rows_.size(); ++i) {
        const Prefix& block = rows_[i].destination;
        if (block.family() != family) continue;
        const auto first = number<Address>(block.address);
        close_until(first, false);
        intervals.begin(first, i);
        open.push_back({last_of(first, 128U - block.length), i});
    }
    close_until(0, true);
}

const RouteRow* RouteTable::find(const IpAddress& address) const {
    const std::uint32_t row = address.is_v4() ? ipv4_.at(number<std::uint32_t>(address))
                                              : ipv6_.at(number<Address128>(address));
    return row == kNone ? nullptr : &rows_[row];
}

}  // namespace sluice::policy
