// SPDX-License-Identifier: Apache-2.0
// RapidCheck's generators for the project's basic values. Identifiers are never 0 (which
// means "none" or "outside"); addresses are of both families, in equal parts.
#pragma once

#include <rapidcheck.h>

#include "dataplane/wire/types.hpp"

namespace rc {

template <class Tag>
struct Arbitrary<sluice::Id<Tag, std::uint32_t>> {
    static Gen<sluice::Id<Tag, std::uint32_t>> arbitrary() {
        return gen::map(gen::inRange<std::uint32_t>(1, 1U << 24),
                        [](std::uint32_t value) { return sluice::Id<Tag>{value}; });
    }
};

template <>
struct Arbitrary<sluice::Cookie> {
    static Gen<sluice::Cookie> arbitrary() {
        return gen::map(gen::arbitrary<std::uint64_t>(),
                        [](std::uint64_t value) { return sluice::Cookie{value}; });
    }
};

template <>
struct Arbitrary<sluice::MacAddress> {
    static Gen<sluice::MacAddress> arbitrary() {  // unicast, not zero
        return gen::map(gen::inRange<std::uint64_t>(1, 1ULL << 40), [](std::uint64_t value) {
            return sluice::MacAddress::from_value(value | 0x020000000000ULL);
        });
    }
};

inline Gen<sluice::IpAddress> ip_address(sluice::Family family) {
    using sluice::IpAddress;
    if (family == sluice::Family::ipv4)
        return gen::map(gen::arbitrary<std::uint32_t>(),
                        [](std::uint32_t value) { return IpAddress::v4(sluice::be32{value}); });
    return gen::map(gen::arbitrary<std::array<std::uint8_t, 16>>(), [](auto bytes) {
        bytes[0] = 0x20;  // global unicast: never v4-mapped
        return IpAddress{bytes};
    });
}

inline Gen<sluice::Family> family() {
    return gen::element(sluice::Family::ipv4, sluice::Family::ipv6);
}

template <>
struct Arbitrary<sluice::IpAddress> {
    static Gen<sluice::IpAddress> arbitrary() {
        return gen::mapcat(family(), [](sluice::Family f) { return ip_address(f); });
    }
};

inline Gen<sluice::Prefix> prefix(sluice::Family family) {
    const int shortest = family == sluice::Family::ipv4 ? 96 : 0;
    return gen::map(gen::pair(ip_address(family), gen::inRange(shortest, 129)), [](auto pair) {
        return sluice::Prefix{pair.first, static_cast<std::uint8_t>(pair.second)}
            .without_host_bits();
    });
}

template <>
struct Arbitrary<sluice::Prefix> {
    static Gen<sluice::Prefix> arbitrary() {
        return gen::mapcat(family(), [](sluice::Family f) { return prefix(f); });
    }
};

}  // namespace rc
