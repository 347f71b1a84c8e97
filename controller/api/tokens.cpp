// SPDX-License-Identifier: Apache-2.0
#include "controller/api/tokens.hpp"

#include <toml++/toml.h>

#include <array>
#include <fstream>
#include <iterator>
#include <utility>

namespace sluice::api {
namespace {

constexpr std::size_t kShortestSecret = 8;

constexpr std::array<std::pair<std::string_view, Role>, 4> kRoles{{{"admin", Role::admin},
                                                                   {"member", Role::member},
                                                                   {"reader", Role::reader},
                                                                   {"agent", Role::agent}}};

Error wrong(const std::string& path, const toml::node& node, const std::string& key,
            const std::string& expected) {
    return Error{Error::Code::invalid,
                 path + ":" + std::to_string(node.source().begin.line) + ": " + key +
                     ": expected " + expected,
                 key};
}

// Every octet is compared, so that the time tells nothing of how much was right.
bool same_secret(std::string_view a, std::string_view b) {
    unsigned char difference = a.size() == b.size() ? 0 : 1;
    for (std::size_t i = 0; i < a.size(); ++i)
        difference =
            static_cast<unsigned char>(difference | (a[i] ^ (b.empty() ? '\1' : b[i % b.size()])));
    return difference == 0;
}

Result<Token> read_token(const toml::table& table, const std::string& path) {
    Token token;
    bool has_role = false;
    for (const auto& [key, node] : table) {
        const std::string name(key.str());
        const auto text = node.value<std::string>();
        if (name != "token" && name != "name" && name != "project" && name != "role")
            return wrong(path, node, name, "one of token, name, project, role");
        if (!text || text->empty()) return wrong(path, node, name, "a string that is not empty");
        if (name == "token") token.secret = *text;
        if (name == "name") token.name = *text;
        if (name == "project") token.project = *text;
        if (name == "role") {
            for (const auto& [word, role] : kRoles)
                if (word == *text) {
                    token.role = role;
                    has_role = true;
                }
            if (!has_role) return wrong(path, node, name, "admin, member, reader or agent");
        }
    }
    if (token.secret.size() < kShortestSecret)
        return wrong(path, table, "token",
                     "at least " + std::to_string(kShortestSecret) + " characters");
    if (!has_role) return wrong(path, table, "role", "admin, member, reader or agent");
    if (token.project.empty() && token.role != Role::admin)
        return wrong(path, table, "project", "the project that the token is for");
    return token;
}

}  // namespace

std::string_view to_string(Role role) {
    for (const auto& [word, known] : kRoles)
        if (known == role) return word;
    return "reader";
}

Result<Tokens> Tokens::read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return Error{Error::Code::unavailable, "cannot read " + path, {}};
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    if (file.bad()) return Error{Error::Code::unavailable, "cannot read " + path, {}};
    return parse(text, path);
}

Result<Tokens> Tokens::parse(std::string_view text, const std::string& path) {
    toml::table file;
    try {
        file = toml::parse(text, path);
    } catch (const toml::parse_error& error) {
        return Error{Error::Code::invalid,
                     path + ":" + std::to_string(error.source().begin.line) + ": " +
                         std::string(error.description()),
                     {}};
    }
    Tokens tokens;
    tokens.required_ = true;
    for (const auto& [key, node] : file) {
        const std::string name(key.str());
        const auto* list = node.as_array();
        if (name != "token" || !list) return wrong(path, node, name, "[[token]] tables only");
        for (const auto& item : *list) {
            const auto* table = item.as_table();
            if (!table) return wrong(path, item, name, "[[token]] tables only");
            auto token = read_token(*table, path);
            if (!token) return token.error();
            if (tokens.find(token->secret)) return wrong(path, item, "token", "each token once");
            if (token->name.empty())
                token->name = token->project.empty() ? std::string("admin") : token->project;
            tokens.tokens_.push_back(std::move(*token));
        }
    }
    if (tokens.tokens_.empty())
        return Error{Error::Code::invalid, path + ": expected at least one [[token]]", {}};
    return tokens;
}

const Token* Tokens::find(std::string_view secret) const {
    const Token* found = nullptr;
    for (const auto& token : tokens_)
        if (same_secret(secret, token.secret)) found = &token;
    return found;
}

}  // namespace sluice::api
