// SPDX-License-Identifier: Apache-2.0
// Reads typed values out of a TOML document and collects everything that is wrong with it,
// with line and key, instead of stopping at the first.
//
// Use: ask a Table for each key it may hold, then call `finish`, which reports the keys that
// nobody asked for. Values are what the caller asked for, or the default after a problem.
// Ownership: a Table refers to its Reader, which must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/config.hpp"

namespace sluice::config {

class Reader {
  public:
    class Table;

    static Reader parse(std::string_view text);
    ~Reader();
    Reader(Reader&&) noexcept;
    Reader& operator=(Reader&&) = delete;

    [[nodiscard]] bool ok() const;
    [[nodiscard]] std::vector<Problem> problems() const;  // by line
    [[nodiscard]] Table root();

  private:
    struct Document;
    explicit Reader(std::unique_ptr<Document> document);
    std::unique_ptr<Document> document_;
};

class Reader::Table {
  public:
    // Says what is wrong with one element, or nothing.
    using EachString = std::function<std::string(const std::string&)>;
    using EachInteger = std::function<std::string(std::int64_t)>;
    using Names = std::initializer_list<std::string_view>;

    [[nodiscard]] unsigned line() const;

    std::string required_string(std::string_view key, std::string_view what);
    std::string choice(std::string_view key, Names names, std::string_view otherwise);
    std::string required_choice(std::string_view key, Names names);
    std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most,
                         std::int64_t otherwise);
    // An integer or a fraction.
    double number(std::string_view key, double least, double most, double otherwise);
    // One string.
    void string(std::string_view key, const EachString& each);
    // An array of strings, or one string.
    void strings(std::string_view key, const EachString& each);
    void integers(std::string_view key, std::int64_t least, std::int64_t most,
                  const EachInteger& each);
    // A table; an empty one if absent.
    Table table(std::string_view key);
    // An array of tables.
    void tables(std::string_view key, const std::function<void(Table)>& each);
    // A key that is known but cannot be used.
    void refuse(std::string_view key, std::string_view why);

    // Of every key that was asked for and is there, and of the elements of arrays.
    using Lines = std::map<std::string, unsigned, std::less<>>;
    [[nodiscard]] const Lines& lines() const;

    void problem(std::string_view key, std::string message);
    void problem_at(unsigned line, std::string key, std::string message);
    [[nodiscard]] bool has_problem(std::string_view key) const;
    // Reports the keys that were not asked for; `example` is the file that has those there are.
    void finish(std::string_view example = "gateway.example.toml");

  private:
    friend class Reader;
    Table(Document& document, const void* table, std::string path, unsigned line)
        : document_(&document), table_(table), path_(std::move(path)), line_(line) {}
    [[nodiscard]] const void* get(std::string_view key);
    [[nodiscard]] std::string path_of(std::string_view key) const;
    [[nodiscard]] std::string choose(std::string_view key, Names names,
                                     const std::string_view* otherwise);

    Document* document_;
    const void* table_;  // nullptr: absent
    std::string path_;
    unsigned line_;
    std::set<std::string, std::less<>> asked_;
};

}  // namespace sluice::config
