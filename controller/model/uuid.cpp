// SPDX-License-Identifier: Apache-2.0
#include "controller/model/uuid.hpp"

#include <random>

namespace sluice::model {

std::optional<Uuid> parse_uuid(std::string_view text) {
    if (text.size() != 36) return std::nullopt;
    Uuid result;
    std::size_t digits = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (c != '-') return std::nullopt;
            continue;
        }
        unsigned value = 0;
        if (c >= '0' && c <= '9')
            value = static_cast<unsigned>(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = static_cast<unsigned>(c - 'a') + 10;
        else if (c >= 'A' && c <= 'F')
            value = static_cast<unsigned>(c - 'A') + 10;
        else
            return std::nullopt;
        auto& octet = result.bytes[digits / 2];
        octet = static_cast<std::uint8_t>(octet << 4 | value);
        ++digits;
    }
    return result;
}

std::string to_string(const Uuid& uuid) {
    constexpr std::string_view hex = "0123456789abcdef";
    std::string result;
    result.reserve(36);
    for (std::size_t i = 0; i < uuid.bytes.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) result += '-';
        result += hex[uuid.bytes[i] >> 4];
        result += hex[uuid.bytes[i] & 15];
    }
    return result;
}

Uuid random_uuid() {
    std::random_device device;
    Uuid result;
    for (std::size_t i = 0; i < 16; i += 4) {
        const std::uint32_t word = device();
        std::memcpy(result.bytes.data() + i, &word, 4);
    }
    result.bytes[6] = static_cast<std::uint8_t>((result.bytes[6] & 0x0f) | 0x40);
    result.bytes[8] = static_cast<std::uint8_t>((result.bytes[8] & 0x3f) | 0x80);
    return result;
}

}  // namespace sluice::model
