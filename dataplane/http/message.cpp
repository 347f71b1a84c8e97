// SPDX-License-Identifier: Apache-2.0
#include "dataplane/http/message.hpp"

#include <algorithm>
#include <charconv>

#include "dataplane/http/client.hpp"
#include "dataplane/http/server.hpp"
#include "dataplane/wire/types.hpp"

namespace sluice::http {
namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](char x, char y) { return lower(x) == lower(y); });
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (lower(c) >= 'a' && lower(c) <= 'f') return lower(c) - 'a' + 10;
    return -1;
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return port;
}

// "host:port" or "[v6]:port" into its halves; the port may be missing.
struct HostPort {
    std::string_view host;
    std::optional<std::string_view> port;
};
std::optional<HostPort> split_host_port(std::string_view text) {
    if (text.starts_with('[')) {
        const auto end = text.find(']');
        if (end == std::string_view::npos) return std::nullopt;
        const auto host = text.substr(1, end - 1);
        const auto rest = text.substr(end + 1);
        if (rest.empty()) return HostPort{host, std::nullopt};
        if (rest.front() != ':') return std::nullopt;
        return HostPort{host, rest.substr(1)};
    }
    const auto colon = text.find(':');
    if (colon == std::string_view::npos) return HostPort{text, std::nullopt};
    if (text.find(':', colon + 1) != std::string_view::npos) return std::nullopt;
    return HostPort{text.substr(0, colon), text.substr(colon + 1)};
}

}  // namespace

std::string_view find_header(const std::vector<Header>& headers, std::string_view name) {
    for (const auto& header : headers)
        if (equal_ignoring_case(header.name, name)) return header.value;
    return {};
}

std::optional<std::string> percent_decode(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            result += text[i];
            continue;
        }
        if (i + 2 >= text.size()) return std::nullopt;
        const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
        if (high < 0 || low < 0) return std::nullopt;
        result += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return result;
}

std::string percent_encode(std::string_view text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    constexpr std::string_view marks = "-._~";
    std::string result;
    for (const char c : text) {
        const bool letter = lower(c) >= 'a' && lower(c) <= 'z';
        if (letter || (c >= '0' && c <= '9') || marks.find(c) != std::string_view::npos) {
            result += c;
        } else {
            const auto octet = static_cast<unsigned char>(c);
            result += {'%', digits[octet >> 4], digits[octet & 15]};
        }
    }
    return result;
}

bool is_utf8(std::string_view text) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    for (std::size_t i = 0; i < text.size();) {
        const unsigned char first = at(i++);
        if (first < 0x80) continue;
        const std::size_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
        if (first < 0xc2 || first > 0xf4 || text.size() - i < more) return false;
        // The second octet's range is what rules out long forms, surrogates and what is too high.
        const unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
        const unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
        if (at(i) < least || at(i) > most) return false;
        for (std::size_t k = 1; k < more; ++k)
            if ((at(i + k) & 0xc0) != 0x80) return false;
        i += more;
    }
    return true;
}

std::optional<std::vector<std::pair<std::string, std::string>>> parse_query(
    std::string_view query) {
    std::vector<std::pair<std::string, std::string>> result;
    while (!query.empty()) {
        const auto end = std::min(query.find('&'), query.size());
        std::string pair(query.substr(0, end));
        query.remove_prefix(std::min(end + 1, query.size()));
        if (pair.empty()) continue;
        std::replace(pair.begin(), pair.end(), '+', ' ');
        const auto equals = std::min(pair.find('='), pair.size());
        auto name = percent_decode(std::string_view(pair).substr(0, equals));
        auto value =
            percent_decode(std::string_view(pair).substr(std::min(equals + 1, pair.size())));
        if (!name || !value) return std::nullopt;
        result.emplace_back(std::move(*name), std::move(*value));
    }
    return result;
}

Result<ListenAddress> parse_listen_address(std::string_view text) {
    const auto parts = split_host_port(text);
    const auto port = parts && parts->port ? parse_port(*parts->port) : std::nullopt;
    if (!port)
        return Error{Error::Code::invalid,
                     "expected ADDRESS:PORT, such as 127.0.0.1:8080 or [::1]:8080, not \"" +
                         std::string(text) + "\"",
                     {}};
    const std::string_view host = parts->host == "localhost" ? "127.0.0.1" : parts->host;
    const auto address = parse_ip(host);
    if (!address)
        return Error{
            Error::Code::invalid, "\"" + std::string(parts->host) + "\" is not an IP address", {}};
    const IpAddress six_loopback = *parse_ip("::1");
    const bool loopback = address->is_v4() ? address->bytes[12] == 127 : *address == six_loopback;
    return ListenAddress{std::string(host), *port, loopback};
}

Result<Origin> parse_origin(std::string_view url) {
    constexpr std::string_view scheme = "http://";
    if (!url.starts_with(scheme))
        return Error{Error::Code::invalid,
                     "expected http://HOST:PORT, not \"" + std::string(url) + "\"",
                     {}};
    std::string_view rest = url.substr(scheme.size());
    Origin origin;
    if (const auto slash = rest.find('/'); slash != std::string_view::npos) {
        std::string_view prefix = rest.substr(slash);
        while (prefix.ends_with('/')) prefix.remove_suffix(1);
        origin.prefix = prefix;
        rest = rest.substr(0, slash);
    }
    const auto parts = split_host_port(rest);
    const auto port = parts && parts->port ? parse_port(*parts->port)
                                           : std::optional<std::uint16_t>(std::uint16_t{80});
    if (!parts || parts->host.empty() || !port || *port == 0)
        return Error{Error::Code::invalid,
                     "expected http://HOST:PORT, not \"" + std::string(url) + "\"",
                     {}};
    origin.host = parts->host;
    origin.port = *port;
    return origin;
}

}  // namespace sluice::http
