// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/table.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace sluice::cli {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kNarrowest = 12;  // no cell is broken to less

std::vector<std::size_t> widths_of(const Table& table) {
    std::vector<std::size_t> widths;
    for (const auto& title : table.head) widths.push_back(width(title));
    for (const auto& row : table.rows)
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
    return widths;
}

std::size_t total(const std::vector<std::size_t>& widths) {
    std::size_t sum = 0;
    for (const auto one : widths) sum += one + kGap;
    return sum == 0 ? 0 : sum - kGap;
}

void leave_out_what_does_not_fit(Table& table, std::size_t columns) {
    auto widths = widths_of(table);
    std::vector<std::size_t> gone;
    for (const auto column : table.dispensable) {
        if (total(widths) <= columns) break;
        const auto before = static_cast<std::size_t>(std::count_if(
            gone.begin(), gone.end(), [&](std::size_t other) { return other < column; }));
        const auto at = static_cast<std::ptrdiff_t>(column - before);
        widths.erase(widths.begin() + at);
        table.head.erase(table.head.begin() + at);
        for (auto& row : table.rows) row.erase(row.begin() + at);
        gone.push_back(column);
    }
}

std::vector<std::size_t> narrowed(std::vector<std::size_t> widths, std::size_t columns) {
    while (columns != 0 && total(widths) > columns) {
        const auto widest = std::max_element(widths.begin(), widths.end());
        if (*widest <= kNarrowest) break;
        --*widest;
    }
    return widths;
}

}  // namespace

std::string render_table(Table table, std::size_t columns) {
    for (auto& row : table.rows)
        for (auto& value : row) value = harmless(value);
    if (columns != 0) leave_out_what_does_not_fit(table, columns);
    const auto widths = narrowed(widths_of(table), columns);
    std::string out;
    const auto print = [&](const std::vector<std::string>& row) {
        std::vector<std::vector<std::string>> cells;
        std::size_t height = 1;
        for (std::size_t i = 0; i < row.size(); ++i) {
            cells.push_back(wrapped(row[i], widths[i]));
            height = std::max(height, cells.back().size());
        }
        for (std::size_t line = 0; line < height; ++line) {
            std::string text;
            for (std::size_t i = 0; i < cells.size(); ++i)
                text += pad(line < cells[i].size() ? cells[i][line] : "", widths[i] + kGap);
            out += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
        }
    };
    print(table.head);
    for (const auto& row : table.rows) print(row);
    return out;
}

std::size_t terminal_columns() {
    winsize size{};
    if (::isatty(STDOUT_FILENO) != 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
        size.ws_col > 0)
        return size.ws_col;
    // One thread, which changes no environment.
    const char* said = std::getenv("COLUMNS");  // NOLINT(concurrency-mt-unsafe)
    return said ? std::strtoul(said, nullptr, 10) : 0;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t columns) {
    std::vector<std::string> lines;
    // Leading spaces are indentation, not the end of a word.
    std::size_t from = std::min(text.find_first_not_of(' '), text.size());
    std::string line(text.substr(0, from));
    bool empty = true;
    while (from < text.size()) {
        const auto end = std::min(text.find(' ', from), text.size());
        const auto word = text.substr(from, end - from);
        if (!empty && width(line) + 1 + width(word) > columns) {
            lines.push_back(std::move(line));
            line.clear();
            empty = true;
        }
        if (!empty) line += ' ';
        line += word;
        empty = false;
        from = std::min(text.find_first_not_of(' ', end), text.size());
    }
    lines.push_back(std::move(line));
    return lines;
}

std::size_t width(std::string_view text) {
    // Octets that do not continue a character.
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string harmless(std::string_view text) {
    std::string result;
    for (const char c : text) {
        const auto octet = static_cast<unsigned char>(c);
        if (octet < 0x20 || octet == 0x7f)
            result += fmt::format("\\x{:02x}", octet);
        else
            result += c;
    }
    return result;
}

std::string pad(const std::string& text, std::size_t columns) {
    return text + std::string(columns - std::min(columns, width(text)), ' ');
}

}  // namespace sluice::cli
