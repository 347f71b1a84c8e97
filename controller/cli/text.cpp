// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "controller/cli/table.hpp"

namespace sluice::cli {
namespace {

const json::value* member(const json::object& object, std::string_view name) {
    const auto* value = object.if_contains(name);
    return value && !value->is_null() ? value : nullptr;
}

void indent(std::string& out, const json::value& value, std::size_t level) {
    const std::string inner((level + 1) * 2, ' ');
    const std::string outer(level * 2, ' ');
    if (value.is_array() && !value.get_array().empty()) {
        out += "[\n";
        for (const auto& item : value.get_array()) {
            out += inner;
            indent(out, item, level + 1);
            out += &item == &value.get_array().back() ? "\n" : ",\n";
        }
        out += outer + "]";
    } else if (value.is_object() && !value.get_object().empty()) {
        out += "{\n";
        std::size_t left = value.get_object().size();
        for (const auto& item : value.get_object()) {
            out += inner + json::serialize(json::value(item.key())) + ": ";
            indent(out, item.value(), level + 1);
            out += --left == 0 ? "\n" : ",\n";
        }
        out += outer + "}";
    } else {
        out += json::serialize(value);
    }
}

}  // namespace

std::string render_pairs(const std::vector<std::pair<std::string, std::string>>& pairs) {
    std::size_t widest = 0;
    for (const auto& [name, value] : pairs) widest = std::max(widest, width(name));
    std::string out;
    for (const auto& [name, value] : pairs) {
        std::string label = pad(name, widest) + "  ";
        std::size_t begin = 0;
        do {
            const auto end = std::min(value.find('\n', begin), value.size());
            out += label + harmless(value.substr(begin, end - begin)) + "\n";
            label = std::string(widest + 2, ' ');
            begin = end + 1;
        } while (begin < value.size());
    }
    return out;
}

std::string cell(const json::value& value) {
    if (value.is_null()) return "-";
    if (value.is_string())
        return value.get_string().empty() ? "-" : std::string(value.get_string());
    if (value.is_array()) {
        std::string out;
        for (const auto& item : value.get_array()) out += (out.empty() ? "" : ", ") + cell(item);
        return out.empty() ? "-" : out;
    }
    if (value.is_object()) {
        // {id, name} is what a reference looks like in answers to queries.
        if (const auto* name = member(value.get_object(), "name")) return cell(*name);
        std::string out;
        for (const auto& item : value.get_object())
            out += fmt::format("{}{}={}", out.empty() ? "" : " ", std::string_view(item.key()),
                               cell(item.value()));
        return out.empty() ? "-" : out;
    }
    return json::serialize(value);
}

std::string pretty(const json::value& value) {
    std::string out;
    indent(out, value, 0);
    return out + "\n";
}

std::string heading(std::string_view name) {
    if (name.ends_with("_ids"))
        name.remove_suffix(4);
    else if (name.ends_with("_id"))
        name.remove_suffix(3);
    std::string result;
    for (const char c : name) result += c == '_' ? ' ' : static_cast<char>(std::toupper(c));
    return result;
}

std::string describe_rule(const json::object& rule) {
    const auto get = [&](std::string_view name) {
        const auto* value = member(rule, name);
        return value ? cell(*value) : std::string();
    };
    std::string text = fmt::format("{} {}", get("direction"), get("action"));
    text += " " + get("family");
    text += " " + (get("protocol").empty() ? "any" : get("protocol"));
    const auto low = get("port_min");
    const auto high = get("port_max");
    if (!low.empty() || !high.empty()) text += " " + (low == high ? low : low + "-" + high);
    if (!get("icmp_type").empty()) text += " type " + get("icmp_type");
    if (!get("icmp_code").empty()) text += " code " + get("icmp_code");
    const std::string_view side = get("direction") == "egress" ? " to " : " from ";
    std::string remote = get("remote_cidr");
    if (remote.empty() && !get("remote_group_id").empty())
        remote = "group " + get("remote_group_id");
    if (remote.empty() && !get("remote_prefix_list_id").empty())
        remote = "list " + get("remote_prefix_list_id");
    text += std::string(side) + (remote.empty() ? "anywhere" : remote);
    if (const auto priority = get("priority"); !priority.empty() && priority != "1000")
        text += " priority " + priority;
    return text;
}

std::string describe_route(const json::object& route) {
    std::string hop = "-";
    if (const auto* next = member(route, "next_hop"); next && next->is_object())
        for (const auto& item : next->get_object()) {
            if (item.value().is_string())
                hop = fmt::format("{} {}",
                                  item.key() == "nat_gateway_id" ? "NAT gateway" : "endpoint",
                                  cell(item.value()));
            else if (item.value().is_bool() && item.value().get_bool())
                hop = std::string(item.key());
        }
    const auto* destination = member(route, "destination");
    return fmt::format("{} -> {}", destination ? cell(*destination) : "?", hop);
}

}  // namespace sluice::cli
