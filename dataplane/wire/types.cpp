// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/types.hpp"

#include <arpa/inet.h>

#include <algorithm>

namespace sluice {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

std::optional<unsigned> hex_digit(char c) {
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
    if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
    return std::nullopt;
}

// A decimal number without sign, space or leading zero, at most `limit`.
std::optional<unsigned> parse_decimal(std::string_view text, unsigned limit) {
    if (text.empty() || text.size() > 3 || (text[0] == '0' && text.size() > 1)) return std::nullopt;
    unsigned value = 0;
    for (char c : text) {
        if (c < '0' || c > '9') return std::nullopt;
        value = value * 10 + static_cast<unsigned>(c - '0');
    }
    if (value > limit) return std::nullopt;
    return value;
}

std::optional<IpAddress> parse_v4(std::string_view text) {
    std::uint32_t address = 0;
    for (int i = 0; i < 4; ++i) {
        const std::size_t dot = i < 3 ? text.find('.') : text.size();
        if (dot == std::string_view::npos) return std::nullopt;
        const auto byte = parse_decimal(text.substr(0, dot), 255);
        if (!byte) return std::nullopt;
        address = address << 8 | *byte;
        if (i < 3) text.remove_prefix(dot + 1);
    }
    return IpAddress::v4(be32{address});
}

std::optional<IpAddress> parse_v6(std::string_view text) {
    // inet_pton wants a terminated text: a NUL inside would hide what follows it.
    char terminated[INET6_ADDRSTRLEN] = {};
    if (text.size() >= sizeof terminated || text.find('\0') != std::string_view::npos)
        return std::nullopt;
    std::copy(text.begin(), text.end(), terminated);
    IpAddress result;
    if (inet_pton(AF_INET6, terminated, result.bytes.data()) != 1) return std::nullopt;
    if (result.is_v4()) return std::nullopt;
    return result;
}

std::string v4_text(const IpAddress& address) {
    std::string text;
    for (std::size_t i = 12; i < 16; ++i) {
        if (i > 12) text += '.';
        text += std::to_string(address.bytes[i]);
    }
    return text;
}

// RFC 5952 section 4. Not inet_ntop: it writes ::1.2.3.4 for ::102:304.
std::string v6_text(const IpAddress& address) {
    std::array<unsigned, 8> groups{};
    for (std::size_t i = 0; i < 8; ++i)
        groups[i] = static_cast<unsigned>(address.bytes[2 * i] << 8 | address.bytes[2 * i + 1]);

    // The first of the longest runs of zero groups; a single group is not shortened.
    std::size_t run_start = 8, run_length = 1;
    for (std::size_t i = 0; i < 8;) {
        std::size_t end = i;
        while (end < 8 && groups[end] == 0) ++end;
        if (end - i > run_length) {
            run_start = i;
            run_length = end - i;
        }
        i = end + 1;
    }

    std::string text;
    for (std::size_t i = 0; i < 8;) {
        if (i == run_start) {
            text += "::";
            i += run_length;
            continue;
        }
        if (!text.empty() && text.back() != ':') text += ':';
        bool leading = true;
        for (int shift = 12; shift >= 0; shift -= 4) {
            const unsigned digit = groups[i] >> shift & 0xf;
            if (digit == 0 && leading && shift != 0) continue;
            leading = false;
            text += kDigits[digit];
        }
        ++i;
    }
    return text;
}

}  // namespace

std::optional<MacAddress> parse_mac(std::string_view text) {
    if (text.size() != 17) return std::nullopt;
    MacAddress result;
    for (std::size_t i = 0; i < 6; ++i) {
        const auto high = hex_digit(text[3 * i]), low = hex_digit(text[3 * i + 1]);
        if (!high || !low || (i < 5 && text[3 * i + 2] != ':')) return std::nullopt;
        result.bytes[i] = static_cast<std::uint8_t>(*high << 4 | *low);
    }
    return result;
}

std::optional<IpAddress> parse_ip(std::string_view text) {
    return text.find(':') == std::string_view::npos ? parse_v4(text) : parse_v6(text);
}

std::optional<Prefix> parse_prefix(std::string_view text) {
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    const auto address = parse_ip(text.substr(0, slash));
    if (!address) return std::nullopt;
    const bool v4 = address->is_v4();
    const auto length = parse_decimal(text.substr(slash + 1), v4 ? 32 : 128);
    if (!length) return std::nullopt;
    return Prefix{*address, static_cast<std::uint8_t>(*length + (v4 ? 96 : 0))};
}

std::string to_string(const MacAddress& mac) {
    std::string text;
    for (auto byte : mac.bytes) {
        if (!text.empty()) text += ':';
        text += kDigits[byte >> 4];
        text += kDigits[byte & 0xf];
    }
    return text;
}

std::string to_string(const IpAddress& address) {
    return address.is_v4() ? v4_text(address) : v6_text(address);
}

std::string to_string(const Prefix& prefix) {
    // By the prefix's family: a block shorter than ::ffff:0:0/96 is IPv6 whatever its address.
    const auto address =
        prefix.family() == Family::ipv4 ? v4_text(prefix.address) : v6_text(prefix.address);
    return address + '/' + std::to_string(prefix.family_length());
}

}  // namespace sluice
