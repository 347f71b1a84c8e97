// SPDX-License-Identifier: Apache-2.0
#include "dataplane/config/reader.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

namespace sluice::config {

struct Reader::Document {
    toml::table root;
    std::vector<Problem> problems;
    Table::Lines lines;
};

namespace {

const toml::table& as_table(const void* table) {
    return *static_cast<const toml::table*>(table);
}
const toml::node& as_node(const void* node) {
    return *static_cast<const toml::node*>(node);
}
unsigned line_of(const toml::node& node) {
    return node.source().begin.line;
}

// What stands there, as people would quote it.
std::string found(const toml::node& node) {
    if (const auto* text = node.as_string()) return fmt::format("found \"{}\"", text->get());
    if (const auto* number = node.as_integer()) return fmt::format("found {}", number->get());
    if (const auto* number = node.as_floating_point())
        return fmt::format("found {}", number->get());
    if (const auto* flag = node.as_boolean()) return fmt::format("found {}", flag->get());
    if (node.is_array()) return "found an array";
    if (node.is_table()) return "found a table";
    return "found a date or time";
}

std::string list(Reader::Table::Names names) {
    std::string result;
    std::size_t left = names.size();
    for (const auto name : names) {
        result += fmt::format("\"{}\"", name);
        if (--left > 0) result += left == 1 ? " or " : ", ";
    }
    return result;
}

}  // namespace

Reader::Reader(std::unique_ptr<Document> document) : document_(std::move(document)) {}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;

Reader Reader::parse(std::string_view text) {
    auto document = std::make_unique<Document>();
    try {
        document->root = toml::parse(text);
    } catch (const toml::parse_error& error) {
        document->problems.push_back(
            {error.source().begin.line, "", fmt::format("not TOML: {}", error.description())});
    }
    return Reader(std::move(document));
}

bool Reader::ok() const {
    return document_->problems.empty();
}

std::vector<Problem> Reader::problems() const {
    auto result = document_->problems;
    std::stable_sort(result.begin(), result.end(),
                     [](const Problem& a, const Problem& b) { return a.line < b.line; });
    return result;
}

Reader::Table Reader::root() {
    return Table(*document_, &document_->root, "", 0);
}

unsigned Reader::Table::line() const {
    return line_;
}

std::string Reader::Table::path_of(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const void* Reader::Table::get(std::string_view key) {
    asked_.emplace(key);
    const toml::node* node = table_ == nullptr ? nullptr : as_table(table_).get(key);
    if (node != nullptr) document_->lines[path_of(key)] = line_of(*node);
    return node;
}

const Reader::Table::Lines& Reader::Table::lines() const {
    return document_->lines;
}

std::string Reader::Table::required_string(std::string_view key, std::string_view what) {
    const void* node = get(key);
    if (node == nullptr) {
        problem(key, fmt::format("missing; expected a string: {}", what));
        return {};
    }
    const auto* text = as_node(node).as_string();
    if (text != nullptr && !text->get().empty()) return text->get();
    problem(key, fmt::format("expected a string: {}; {}", what, found(as_node(node))));
    return {};
}

std::string Reader::Table::choose(std::string_view key, Names names,
                                  const std::string_view* otherwise) {
    const void* node = get(key);
    if (node == nullptr) {
        if (otherwise != nullptr) return std::string(*otherwise);
        problem(key, fmt::format("missing; expected {}", list(names)));
        return {};
    }
    if (const auto* text = as_node(node).as_string())
        if (std::find(names.begin(), names.end(), text->get()) != names.end()) return text->get();
    problem(key, fmt::format("expected {}, {}", list(names), found(as_node(node))));
    return {};
}

std::string Reader::Table::choice(std::string_view key, Names names, std::string_view otherwise) {
    return choose(key, names, &otherwise);
}

std::string Reader::Table::required_choice(std::string_view key, Names names) {
    return choose(key, names, nullptr);
}

std::int64_t Reader::Table::integer(std::string_view key, std::int64_t least, std::int64_t most,
                                    std::int64_t otherwise) {
    const void* node = get(key);
    if (node == nullptr) return otherwise;
    if (const auto* number = as_node(node).as_integer())
        if (number->get() >= least && number->get() <= most) return number->get();
    problem(key, fmt::format("expected an integer from {} to {}, {}", least, most,
                             found(as_node(node))));
    return otherwise;
}

double Reader::Table::number(std::string_view key, double least, double most, double otherwise) {
    const void* node = get(key);
    if (node == nullptr) return otherwise;
    if (as_node(node).is_number())
        if (const auto number = as_node(node).value<double>();
            number && *number >= least && *number <= most)
            return *number;
    problem(key,
            fmt::format("expected a number from {} to {}, {}", least, most, found(as_node(node))));
    return otherwise;
}

void Reader::Table::strings(std::string_view key, const EachString& each) {
    const void* node = get(key);
    if (node == nullptr) return;
    const auto one = [&](const toml::node& element, std::string path) {
        document_->lines[path] = line_of(element);
        const auto* text = element.as_string();
        const auto why = text != nullptr ? each(text->get()) : std::string("expected a string");
        if (!why.empty())
            problem_at(line_of(element), std::move(path),
                       fmt::format("{}, {}", why, found(element)));
    };
    const auto* array = as_node(node).as_array();
    if (array == nullptr) return one(as_node(node), path_of(key));
    for (std::size_t i = 0; i < array->size(); ++i)
        one(*array->get(i), fmt::format("{}[{}]", path_of(key), i));
}

void Reader::Table::string(std::string_view key, const EachString& each) {
    const void* node = get(key);
    if (node != nullptr && as_node(node).is_array())
        return problem(key, "expected a string, found an array");
    strings(key, each);
}

void Reader::Table::integers(std::string_view key, std::int64_t least, std::int64_t most,
                             const EachInteger& each) {
    const void* node = get(key);
    if (node == nullptr) return;
    const auto* array = as_node(node).as_array();
    if (array == nullptr)
        return problem(key, fmt::format("expected an array of integers, {}", found(as_node(node))));
    for (std::size_t i = 0; i < array->size(); ++i) {
        const auto& element = *array->get(i);
        document_->lines[fmt::format("{}[{}]", path_of(key), i)] = line_of(element);
        const auto* number = element.as_integer();
        const bool in_range = number != nullptr && number->get() >= least && number->get() <= most;
        const auto why = in_range ? each(number->get())
                                  : fmt::format("expected an integer from {} to {}", least, most);
        if (!why.empty())
            problem_at(line_of(element), fmt::format("{}[{}]", path_of(key), i),
                       fmt::format("{}, {}", why, found(element)));
    }
}

Reader::Table Reader::Table::table(std::string_view key) {
    const void* node = get(key);
    if (node != nullptr && as_node(node).is_table())
        return Table(*document_, as_node(node).as_table(), path_of(key), line_of(as_node(node)));
    if (node != nullptr) problem(key, fmt::format("expected a table, {}", found(as_node(node))));
    return Table(*document_, nullptr, path_of(key), line_);
}

void Reader::Table::tables(std::string_view key, const std::function<void(Table)>& each) {
    const void* node = get(key);
    if (node == nullptr) return;
    const auto* array = as_node(node).as_array();
    const bool all = array != nullptr && std::all_of(array->begin(), array->end(),
                                                     [](const auto& e) { return e.is_table(); });
    if (!all) return problem(key, fmt::format("expected [[{}]], an array of tables", path_of(key)));
    for (std::size_t i = 0; i < array->size(); ++i)
        each(Table(*document_, array->get(i)->as_table(), fmt::format("{}[{}]", path_of(key), i),
                   line_of(*array->get(i))));
}

void Reader::Table::refuse(std::string_view key, std::string_view why) {
    if (get(key) != nullptr) problem(key, std::string(why));
}

void Reader::Table::problem(std::string_view key, std::string message) {
    const auto* node = table_ == nullptr ? nullptr : as_table(table_).get(key);
    problem_at(node != nullptr ? line_of(*node) : line_, path_of(key), std::move(message));
}

void Reader::Table::problem_at(unsigned line, std::string key, std::string message) {
    document_->problems.push_back({line, std::move(key), std::move(message)});
}

bool Reader::Table::has_problem(std::string_view key) const {
    const auto path = path_of(key);
    return std::any_of(
        document_->problems.begin(), document_->problems.end(),
        [&](const Problem& p) { return p.key == path || p.key.starts_with(path + "["); });
}

void Reader::Table::finish(std::string_view example) {
    if (table_ == nullptr) return;
    for (const auto& [key, value] : as_table(table_))
        if (!asked_.contains(key.str()))
            problem_at(line_of(value), path_of(key.str()),
                       fmt::format("unknown key; {} has those that there are", example));
}

}  // namespace sluice::config
