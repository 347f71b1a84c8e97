// SPDX-License-Identifier: Apache-2.0
// JSON (RFC 8259) to typed values and back, with JSON pointers (RFC 6901) to what is wrong.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "controller/model/resource.hpp"
#include "dataplane/wire/result.hpp"

namespace sluice::model {

namespace json = boost::json;

// One thing that is wrong with a request.
struct Problem {
    std::string pointer;
    std::string detail;
    Error::Code code = Error::Code::invalid;
};
using Problems = std::vector<Problem>;

// The pointer of a member: '~' and '/' are escaped (RFC 6901 section 3).
std::string member_pointer(const std::string& pointer, std::string_view member);

// Codec<T>::read answers nothing after it has added a problem. Codec<T>::schema is the
// type's JSON Schema, as OpenAPI 3.1 embeds it.
template <class T>
struct Codec;

std::optional<std::string> read_string(const json::value&, const std::string& pointer, Problems&);
// For names and other texts that people read: also no control characters (Unicode's C0, C1
// and DELETE), which would end a line or move a cursor wherever the text is shown; at most 255
// octets.
std::optional<std::string> read_label(const json::value&, const std::string& pointer, Problems&);
std::optional<std::string> check_label(std::string_view text);  // what is wrong with it
std::optional<std::uint64_t> read_number(const json::value&, const std::string& pointer, Problems&,
                                         std::uint64_t least, std::uint64_t most);
json::value number_schema(std::uint64_t least, std::uint64_t most);
json::value string_schema(std::string_view format);

template <>
struct Codec<std::string> {
    static std::optional<std::string> read(const json::value&, const std::string&, Problems&);
    static json::value write(const std::string& value) { return json::value(value); }
    static json::value schema();
};
template <>
struct Codec<bool> {
    static std::optional<bool> read(const json::value&, const std::string&, Problems&);
    static json::value write(bool value) { return value; }
    static json::value schema();
};

template <std::unsigned_integral T>
struct Codec<T> {
    static constexpr std::uint64_t kMost = std::numeric_limits<T>::max();
    static std::optional<T> read(const json::value& value, const std::string& at,
                                 Problems& problems) {
        const auto number = read_number(value, at, problems, 0, kMost);
        if (!number) return std::nullopt;
        return static_cast<T>(*number);
    }
    static json::value write(T value) { return static_cast<std::uint64_t>(value); }
    static json::value schema() { return number_schema(0, kMost); }
};
template <class T, T Least, T Most>
struct Codec<Bounded<T, Least, Most>> {
    using Value = Bounded<T, Least, Most>;
    static std::optional<Value> read(const json::value& value, const std::string& at,
                                     Problems& problems) {
        const auto number = read_number(value, at, problems, Least, Most);
        if (!number) return std::nullopt;
        return Value{static_cast<T>(*number)};
    }
    static json::value write(const Value& value) { return std::uint64_t{value.value}; }
    static json::value schema() { return number_schema(Least, Most); }
};

std::optional<std::uint32_t> read_setting(const json::value&, const std::string& pointer, Problems&,
                                          const openflow::SettingSpec& setting);
json::value setting_schema(const openflow::SettingSpec& setting);

template <openflow::Setting S>
struct Codec<Setting<S>> {
    static std::optional<Setting<S>> read(const json::value& value, const std::string& at,
                                          Problems& problems) {
        const auto number = read_setting(value, at, problems, *openflow::find_setting(S));
        if (!number) return std::nullopt;
        return Setting<S>{*number};
    }
    static json::value write(const Setting<S>& value) { return std::uint64_t{value.value}; }
    static json::value schema() { return setting_schema(*openflow::find_setting(S)); }
};

// The values with a text form of their own.
#define SLUICE_TEXT_CODEC(T)                                                             \
    template <>                                                                          \
    struct Codec<T> {                                                                    \
        static std::optional<T> read(const json::value&, const std::string&, Problems&); \
        static json::value write(const T& value);                                        \
        static json::value schema();                                                     \
    };
SLUICE_TEXT_CODEC(Uuid)
SLUICE_TEXT_CODEC(IpAddress)
SLUICE_TEXT_CODEC(Prefix)  // host bits are refused
SLUICE_TEXT_CODEC(MacAddress)
SLUICE_TEXT_CODEC(Vni)
SLUICE_TEXT_CODEC(Family)
SLUICE_TEXT_CODEC(Protocol)
SLUICE_TEXT_CODEC(EndpointKind)
SLUICE_TEXT_CODEC(RuleDirection)
SLUICE_TEXT_CODEC(RuleAction)
SLUICE_TEXT_CODEC(PoolMode)
SLUICE_TEXT_CODEC(AdminState)
SLUICE_TEXT_CODEC(NatMapping)
SLUICE_TEXT_CODEC(NatFiltering)
// Objects, read by their own field tables.
SLUICE_TEXT_CODEC(AllowedAddress)
SLUICE_TEXT_CODEC(Rule)
SLUICE_TEXT_CODEC(RouteTarget)
SLUICE_TEXT_CODEC(Route)
SLUICE_TEXT_CODEC(VpcLimits)
SLUICE_TEXT_CODEC(VpcTimeouts)
#undef SLUICE_TEXT_CODEC

template <Kind K>
struct Codec<Ref<K>> {
    static std::optional<Ref<K>> read(const json::value& value, const std::string& at,
                                      Problems& problems) {
        const auto id = Codec<Uuid>::read(value, at, problems);
        if (!id) return std::nullopt;
        return Ref<K>{*id};
    }
    static json::value write(const Ref<K>& value) { return Codec<Uuid>::write(value.id); }
    static json::value schema() { return Codec<Uuid>::schema(); }
};

// null is the absent value, in both directions.
template <class T>
struct Codec<std::optional<T>> {
    static std::optional<std::optional<T>> read(const json::value& value, const std::string& at,
                                                Problems& problems) {
        if (value.is_null()) return std::optional<T>{};
        auto inner = Codec<T>::read(value, at, problems);
        if (!inner) return std::nullopt;
        return std::optional<T>{std::move(*inner)};
    }
    static json::value write(const std::optional<T>& value) {
        return value ? Codec<T>::write(*value) : json::value(nullptr);
    }
    static json::value schema() { return Codec<T>::schema(); }
};

inline constexpr std::size_t kMostItems = 10'000;
std::optional<const json::array*> read_array(const json::value&, const std::string& pointer,
                                             Problems&);
json::value array_schema(json::value items);

template <class T>
struct Codec<std::vector<T>> {
    static std::optional<std::vector<T>> read(const json::value& value, const std::string& at,
                                              Problems& problems) {
        const auto array = read_array(value, at, problems);
        if (!array) return std::nullopt;
        std::vector<T> result;
        result.reserve((*array)->size());
        bool complete = true;
        for (std::size_t i = 0; i < (*array)->size(); ++i) {
            auto item = Codec<T>::read((**array)[i], at + "/" + std::to_string(i), problems);
            complete = complete && item;
            if (item) result.push_back(std::move(*item));
        }
        if (!complete) return std::nullopt;
        return result;
    }
    static json::value write(const std::vector<T>& value) {
        json::array result;
        result.reserve(value.size());
        for (const auto& item : value) result.push_back(Codec<T>::write(item));
        return result;
    }
    static json::value schema() { return array_schema(Codec<T>::schema()); }
};

}  // namespace sluice::model
