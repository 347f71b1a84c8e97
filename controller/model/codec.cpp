// SPDX-License-Identifier: Apache-2.0
#include "controller/model/codec.hpp"

#include <array>
#include <utility>

namespace sluice::model {
namespace {

constexpr std::size_t kLongestString = 4096;
constexpr std::size_t kLongestLabel = 255;

std::nullopt_t fail(Problems& problems, const std::string& at, std::string detail) {
    problems.push_back({at, std::move(detail)});
    return std::nullopt;
}

// A value that is one of a few words.
template <class T, std::size_t N>
using Words = std::array<std::pair<std::string_view, T>, N>;

constexpr Words<Family, 2> kFamilies{{{"ipv4", Family::ipv4}, {"ipv6", Family::ipv6}}};
constexpr Words<EndpointKind, 3> kEndpointKinds{{{"vm", EndpointKind::vm},
                                                 {"gpu_server", EndpointKind::gpu_server},
                                                 {"physical", EndpointKind::physical}}};
constexpr Words<RuleDirection, 2> kDirections{
    {{"ingress", RuleDirection::ingress}, {"egress", RuleDirection::egress}}};
constexpr Words<RuleAction, 2> kActions{{{"allow", RuleAction::allow}, {"deny", RuleAction::deny}}};
constexpr Words<PoolMode, 2> kPoolModes{
    {{"routed", PoolMode::routed}, {"on_link", PoolMode::on_link}}};
constexpr Words<NatMapping, 2> kNatMappings{
    {{"endpoint_independent", NatMapping::endpoint_independent},
     {"address_and_port_dependent", NatMapping::address_and_port_dependent}}};
constexpr Words<NatFiltering, 3> kNatFilterings{
    {{"endpoint_independent", NatFiltering::endpoint_independent},
     {"address_dependent", NatFiltering::address_dependent},
     {"address_and_port_dependent", NatFiltering::address_and_port_dependent}}};
constexpr Words<AdminState, 2> kAdminStates{{{"up", AdminState::up}, {"drain", AdminState::drain}}};

template <class T, std::size_t N>
std::optional<T> read_word(const Words<T, N>& words, const json::value& value,
                           const std::string& at, Problems& problems) {
    const auto text = read_string(value, at, problems);
    if (!text) return std::nullopt;
    std::string known;
    for (const auto& [word, meaning] : words) {
        if (word == *text) return meaning;
        known += (known.empty() ? "" : ", ") + std::string(word);
    }
    return fail(problems, at, "must be one of " + known);
}
template <class T, std::size_t N>
json::value write_word(const Words<T, N>& words, const T& value) {
    for (const auto& [word, meaning] : words)
        if (meaning == value) return json::value(word);
    return nullptr;
}
template <class T, std::size_t N>
json::value word_schema(const Words<T, N>& words) {
    json::array all;
    for (const auto& [word, meaning] : words) all.emplace_back(word);
    return json::object{{"type", "string"}, {"enum", std::move(all)}};
}

constexpr std::array<std::pair<std::string_view, std::uint8_t>, 8> kProtocols{{{"icmp", 1},
                                                                               {"tcp", 6},
                                                                               {"udp", 17},
                                                                               {"gre", 47},
                                                                               {"esp", 50},
                                                                               {"ah", 51},
                                                                               {"icmpv6", 58},
                                                                               {"sctp", 132}}};

}  // namespace

std::string member_pointer(const std::string& pointer, std::string_view member) {
    std::string result = pointer + "/";
    for (const char c : member) {
        if (c == '~')
            result += "~0";
        else if (c == '/')
            result += "~1";
        else
            result += c;
    }
    return result;
}

std::optional<std::string> read_string(const json::value& value, const std::string& at,
                                       Problems& problems) {
    if (!value.is_string()) return fail(problems, at, "must be a string");
    const auto& text = value.get_string();
    if (text.size() > kLongestString)
        return fail(problems, at, "is longer than " + std::to_string(kLongestString) + " octets");
    return std::string(text);
}

std::optional<std::string> check_label(std::string_view text) {
    if (text.size() > kLongestLabel)
        return "is longer than " + std::to_string(kLongestLabel) + " octets";
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto octet = static_cast<unsigned char>(text[i]);
        const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
        // U+0080 to U+009F are C2 80 to C2 9F in UTF-8, which the text is known to be.
        if (octet < 0x20 || octet == 0x7f || (octet == 0xc2 && next < 0xa0))
            return "has a control character at octet " + std::to_string(i);
    }
    return std::nullopt;
}

std::optional<std::string> read_label(const json::value& value, const std::string& at,
                                      Problems& problems) {
    auto text = read_string(value, at, problems);
    if (!text) return std::nullopt;
    if (auto wrong = check_label(*text)) return fail(problems, at, *std::move(wrong));
    return text;
}

std::optional<std::uint64_t> read_number(const json::value& value, const std::string& at,
                                         Problems& problems, std::uint64_t least,
                                         std::uint64_t most) {
    const std::string expected =
        "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    std::uint64_t number = 0;
    if (value.is_uint64())
        number = value.get_uint64();
    else if (value.is_int64() && value.get_int64() >= 0)
        number = static_cast<std::uint64_t>(value.get_int64());
    else
        return fail(problems, at, expected);
    if (number < least || number > most) return fail(problems, at, expected);
    return number;
}

std::optional<std::uint32_t> read_setting(const json::value& value, const std::string& at,
                                          Problems& problems,
                                          const openflow::SettingSpec& setting) {
    Problems own;
    const auto number = read_number(value, at, own, setting.minimum, setting.maximum);
    if (number) return static_cast<std::uint32_t>(*number);
    std::string unit(setting.unit);
    if (!unit.empty()) unit.insert(0, 1, ' ');
    return fail(problems, at, own.front().detail + unit + ": " + std::string(setting.meaning));
}

std::optional<const json::array*> read_array(const json::value& value, const std::string& at,
                                             Problems& problems) {
    if (!value.is_array()) return fail(problems, at, "must be an array");
    if (value.get_array().size() > kMostItems)
        return fail(problems, at, "has more than " + std::to_string(kMostItems) + " items");
    return &value.get_array();
}

json::value number_schema(std::uint64_t least, std::uint64_t most) {
    return json::object{{"type", "integer"}, {"minimum", least}, {"maximum", most}};
}
json::value setting_schema(const openflow::SettingSpec& setting) {
    std::string text(setting.meaning);
    if (!setting.unit.empty()) text += " (" + std::string(setting.unit) + ")";
    json::object schema{{"type", "integer"},
                        {"minimum", setting.minimum},
                        {"maximum", setting.maximum},
                        {"description", std::move(text)}};
    if (setting.id >= openflow::Setting::tcp_established) schema["default"] = setting.otherwise;
    return schema;
}
json::value string_schema(std::string_view format) {
    return json::object{{"type", "string"}, {"format", format}};
}
json::value array_schema(json::value items) {
    return json::object{{"type", "array"}, {"items", std::move(items)}, {"maxItems", kMostItems}};
}

std::optional<std::string> Codec<std::string>::read(const json::value& value, const std::string& at,
                                                    Problems& problems) {
    return read_string(value, at, problems);
}
json::value Codec<std::string>::schema() {
    return json::object{{"type", "string"}, {"maxLength", kLongestString}};
}

std::optional<bool> Codec<bool>::read(const json::value& value, const std::string& at,
                                      Problems& problems) {
    if (!value.is_bool()) return fail(problems, at, "must be true or false");
    return value.get_bool();
}
json::value Codec<bool>::schema() {
    return json::object{{"type", "boolean"}};
}

std::optional<Uuid> Codec<Uuid>::read(const json::value& value, const std::string& at,
                                      Problems& problems) {
    const auto text = read_string(value, at, problems);
    if (!text) return std::nullopt;
    const auto uuid = parse_uuid(*text);
    if (!uuid || uuid->is_nil()) return fail(problems, at, "must be a UUID");
    return uuid;
}
json::value Codec<Uuid>::write(const Uuid& value) {
    return json::value(to_string(value));
}
json::value Codec<Uuid>::schema() {
    return string_schema("uuid");
}

std::optional<IpAddress> Codec<IpAddress>::read(const json::value& value, const std::string& at,
                                                Problems& problems) {
    const auto text = read_string(value, at, problems);
    if (!text) return std::nullopt;
    const auto address = parse_ip(*text);
    if (!address) return fail(problems, at, "must be an IPv4 or IPv6 address");
    return address;
}
json::value Codec<IpAddress>::write(const IpAddress& value) {
    return json::value(sluice::to_string(value));
}
json::value Codec<IpAddress>::schema() {
    return json::object{
        {"type", "string"},
        {"anyOf", json::array{json::object{{"format", "ipv4"}}, json::object{{"format", "ipv6"}}}}};
}

std::optional<Prefix> Codec<Prefix>::read(const json::value& value, const std::string& at,
                                          Problems& problems) {
    const auto text = read_string(value, at, problems);
    if (!text) return std::nullopt;
    const auto prefix = parse_prefix(*text);
    if (!prefix)
        return fail(problems, at, "must be a CIDR block such as 10.0.0.0/16 or 2001:db8::/64");
    const Prefix clean = prefix->without_host_bits();
    if (clean != *prefix)
        return fail(problems, at,
                    "has host bits set; the block of this length is " + sluice::to_string(clean));
    return clean;
}
json::value Codec<Prefix>::write(const Prefix& value) {
    return json::value(sluice::to_string(value));
}
json::value Codec<Prefix>::schema() {
    return string_schema("cidr");
}

std::optional<MacAddress> Codec<MacAddress>::read(const json::value& value, const std::string& at,
                                                  Problems& problems) {
    const auto text = read_string(value, at, problems);
    if (!text) return std::nullopt;
    const auto mac = parse_mac(*text);
    if (!mac) return fail(problems, at, "must be a MAC address such as 02:00:00:00:00:01");
    if (mac->is_zero() || mac->is_multicast())
        return fail(problems, at, "must be the MAC address of one station");
    return mac;
}
json::value Codec<MacAddress>::write(const MacAddress& value) {
    return json::value(sluice::to_string(value));
}
json::value Codec<MacAddress>::schema() {
    return string_schema("mac");
}

std::optional<Vni> Codec<Vni>::read(const json::value& value, const std::string& at,
                                    Problems& problems) {
    const auto number = read_number(value, at, problems, 1, (1U << 24) - 1);
    if (!number) return std::nullopt;
    return Vni{static_cast<std::uint32_t>(*number)};
}
json::value Codec<Vni>::write(const Vni& value) {
    return std::uint64_t{value.value};
}
json::value Codec<Vni>::schema() {
    return number_schema(1, (1U << 24) - 1);
}

std::optional<Protocol> Codec<Protocol>::read(const json::value& value, const std::string& at,
                                              Problems& problems) {
    if (!value.is_string()) {
        const auto number = read_number(value, at, problems, 0, 255);
        if (!number) return std::nullopt;
        return Protocol{static_cast<std::uint8_t>(*number)};
    }
    std::string known;
    for (const auto& [word, number] : kProtocols) {
        if (word == std::string_view(value.get_string())) return Protocol{number};
        known += std::string(word) + ", ";
    }
    return fail(problems, at, "must be one of " + known + "or a number from 0 to 255");
}
json::value Codec<Protocol>::write(const Protocol& value) {
    for (const auto& [word, number] : kProtocols)
        if (number == value.number) return json::value(word);
    return std::uint64_t{value.number};
}
json::value Codec<Protocol>::schema() {
    json::array words;
    for (const auto& [word, number] : kProtocols) words.emplace_back(word);
    return json::object{
        {"anyOf", json::array{json::object{{"enum", std::move(words)}}, number_schema(0, 255)}}};
}

#define SLUICE_WORD_CODEC(T, words)                                                  \
    std::optional<T> Codec<T>::read(const json::value& value, const std::string& at, \
                                    Problems& problems) {                            \
        return read_word(words, value, at, problems);                                \
    }                                                                                \
    json::value Codec<T>::write(const T& value) {                                    \
        return write_word(words, value);                                             \
    }                                                                                \
    json::value Codec<T>::schema() {                                                 \
        return word_schema(words);                                                   \
    }
SLUICE_WORD_CODEC(Family, kFamilies)
SLUICE_WORD_CODEC(EndpointKind, kEndpointKinds)
SLUICE_WORD_CODEC(RuleDirection, kDirections)
SLUICE_WORD_CODEC(RuleAction, kActions)
SLUICE_WORD_CODEC(PoolMode, kPoolModes)
SLUICE_WORD_CODEC(AdminState, kAdminStates)
SLUICE_WORD_CODEC(NatMapping, kNatMappings)
SLUICE_WORD_CODEC(NatFiltering, kNatFilterings)
#undef SLUICE_WORD_CODEC

}  // namespace sluice::model
