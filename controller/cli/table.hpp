// SPDX-License-Identifier: Apache-2.0
// Tables that fit the terminal. Pure functions but for terminal_columns().
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

struct Table {
    std::vector<std::string> head;
    std::vector<std::vector<std::string>> rows;
    // Indexes of columns that may be left out where the table is too wide, the first one first.
    std::vector<std::size_t> dispensable = {};
};

// Rows under a head, columns two spaces apart, control characters of a value escaped. Wider than
// `columns` (0: no limit), columns are left out, then the widest cells are broken between words.
std::string render_table(Table table, std::size_t columns = 0);

// Of the terminal on standard output, or what COLUMNS says; 0 if neither.
std::size_t terminal_columns();

// Broken between words; a word that is too long stays whole.
std::vector<std::string> wrapped(std::string_view text, std::size_t columns);

// Columns of a terminal that a UTF-8 text takes, wide characters aside.
std::size_t width(std::string_view text);
// Control characters escaped: a name must not steer the terminal of whoever lists it.
std::string harmless(std::string_view text);
// Spaces up to a width.
std::string pad(const std::string& text, std::size_t columns);

}  // namespace sluice::cli
