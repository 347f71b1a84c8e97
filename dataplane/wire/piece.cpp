// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/piece.hpp"

#include "dataplane/wire/headers.hpp"

namespace sluice::wire {

namespace {

constexpr std::uint32_t kLongest = 65'535;

// The offset field of both families, in octets: three bits of flags, or beneath it.
std::optional<Piece> checked(Piece piece, std::uint32_t length) {
    if (length == 0 || length > kLongest || piece.offset + length > kLongest) return std::nullopt;
    if (!piece.last && length % 8 != 0) return std::nullopt;
    piece.length = static_cast<std::uint16_t>(length);
    return piece;
}

// The parser came as far as the fragment header, so the chain before it is sound.
std::size_t fragment_header(const std::uint8_t* ip) {
    std::uint8_t next = ip[6];
    std::size_t at = ipv6::kSize;
    while (next != ipv6::kFragmentHeader) {
        next = ip[at];
        at += std::size_t{ip[at + 1]} * 8 + 8;
    }
    return at;
}

}  // namespace

std::optional<Piece> piece_of(std::span<const std::uint8_t> contiguous, const Headers& headers) {
    const std::uint8_t* ip = contiguous.data() + headers.l3;
    Piece piece;
    if (!headers.has(kInnerV6)) {
        const std::uint16_t word = load16(ip + ipv4::kFragment).host();
        piece.identification = load16(ip + ipv4::kIdentification).host();
        piece.protocol = ip[ipv4::kProtocol];
        piece.offset = static_cast<std::uint16_t>(word << 3);
        piece.last = (word & ipv4::kMoreFragments) == 0;
        return checked(piece, headers.ip_length - (headers.l4 - headers.l3 + 0U));
    }
    const std::size_t at = fragment_header(ip);
    const std::uint16_t word = load16(ip + at + 2).host();
    piece.identification = load32(ip + at + 4).host();
    piece.offset = static_cast<std::uint16_t>(word & 0xfff8);
    piece.last = (word & 1) == 0;
    return checked(piece, headers.ip_length - static_cast<std::uint32_t>(at) - 8);
}

}  // namespace sluice::wire
