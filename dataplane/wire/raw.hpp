// SPDX-License-Identifier: Apache-2.0
// Words as they lie in a packet, for where byte order does not matter: comparisons, keys,
// Internet checksums. Elsewhere headers.hpp has loads that know their order.
#pragma once

#include <cstdint>
#include <cstring>

namespace sluice::wire {

template <class Word>
Word raw(const std::uint8_t* at) {
    Word word;
    std::memcpy(&word, at, sizeof word);
    return word;
}
inline std::uint16_t raw16(const std::uint8_t* at) {
    return raw<std::uint16_t>(at);
}
inline std::uint32_t raw32(const std::uint8_t* at) {
    return raw<std::uint32_t>(at);
}
inline std::uint64_t raw64(const std::uint8_t* at) {
    return raw<std::uint64_t>(at);
}
inline void put_raw(std::uint8_t* at, std::uint16_t word) {
    std::memcpy(at, &word, sizeof word);
}
inline void put_raw(std::uint8_t* at, std::uint32_t word) {
    std::memcpy(at, &word, sizeof word);
}

// A running sum of the Internet checksum (RFC 1071), folded to 16 bits.
constexpr std::uint16_t fold(std::uint64_t sum) {
    sum = (sum >> 32) + (sum & 0xffffffff);
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    return static_cast<std::uint16_t>((sum >> 16) + (sum & 0xffff));
}
// Of a sum of two words and a carry: fewer steps.
constexpr std::uint16_t fold_small(std::uint32_t sum) {
    sum = (sum >> 16) + (sum & 0xffff);
    return static_cast<std::uint16_t>((sum >> 16) + sum);
}

}  // namespace sluice::wire
