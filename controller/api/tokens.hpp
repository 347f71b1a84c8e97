// SPDX-License-Identifier: Apache-2.0
// Who may ask what: the tokens file.
//
// Plain values; reading the file is the only I/O. Errors name the line, the key and what
// was expected. Looking a token up takes the same time whichever it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/wire/result.hpp"

namespace sluice::api {

enum class Role : std::uint8_t { admin, member, reader, agent };
std::string_view to_string(Role role);

struct Token {
    std::string secret;
    std::string name;     // for the audit record
    std::string project;  // empty only for an admin
    Role role = Role::reader;
};

class Tokens {
  public:
    // The error's message is a line for each thing that is wrong with the file.
    // Also refuses a file that others may read or write.
    static Result<Tokens> read(const std::string& path);
    static Result<Tokens> parse(std::string_view toml, const std::string& path);
    // Whoever reaches the loopback is the admin.
    static Tokens none() { return {}; }

    [[nodiscard]] bool required() const { return required_; }
    [[nodiscard]] const Token* find(std::string_view secret) const;

  private:
    std::vector<Token> tokens_;
    bool required_ = false;
};

}  // namespace sluice::api
