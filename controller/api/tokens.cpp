// SPDX-License-Identifier: Apache-2.0
#include "controller/api/tokens.hpp"

#include <sys/stat.h>
#include <toml++/toml.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

namespace sluice::api {
namespace {

constexpr std::size_t kShortestSecret = 8;

constexpr std::array<std::pair<std::string_view, Role>, 4> kRoles{{{"admin", Role::admin},
                                                                   {"member", Role::member},
                                                                   {"reader", Role::reader},
                                                                   {"agent", Role::agent}}};

// Everything that is wrong with the file, a line each.
class Problems {
  public:
    explicit Problems(const std::string& path) : path_(path) {}
    void add(const toml::node& node, const std::string& key, const std::string& expected) {
        add(path_ + ":" + std::to_string(node.source().begin.line) + ": " + key + ": expected " +
            expected);
    }
    void add(const std::string& line) { lines_ += (lines_.empty() ? "" : "\n") + line; }
    [[nodiscard]] bool empty() const { return lines_.empty(); }
    [[nodiscard]] Error error() const { return {Error::Code::invalid, lines_, {}}; }

  private:
    const std::string& path_;
    std::string lines_;
};

// Every octet is compared, so that the time tells nothing of how much was right.
bool same_secret(std::string_view a, std::string_view b) {
    unsigned char difference = a.size() == b.size() ? 0 : 1;
    for (std::size_t i = 0; i < a.size(); ++i)
        difference =
            static_cast<unsigned char>(difference | (a[i] ^ (b.empty() ? '\1' : b[i % b.size()])));
    return difference == 0;
}

std::optional<Role> role_of(std::string_view word) {
    for (const auto& [known, role] : kRoles)
        if (known == word) return role;
    return std::nullopt;
}

// As far as it makes sense; what does not is among the problems.
Token read_token(const toml::table& table, Problems& problems) {
    constexpr const char* kRoleNames = "admin, member, reader or agent";
    Token token;
    std::optional<Role> role;
    for (const auto& [key, node] : table) {
        const std::string name(key.str());
        const auto text = node.value<std::string>();
        if (name != "token" && name != "name" && name != "project" && name != "role") {
            problems.add(node, name, "one of token, name, project, role");
        } else if (!node.is_string() || !text || text->empty()) {
            problems.add(node, name, "a string that is not empty");
        } else if (name == "token") {
            token.secret = *text;
        } else if (name == "name") {
            token.name = *text;
        } else if (name == "project") {
            token.project = *text;
        } else {
            role = role_of(*text);
            if (!role) problems.add(node, name, kRoleNames);
        }
    }
    token.role = role.value_or(Role::reader);
    // What is there and wrong was said.
    if (token.secret.size() < kShortestSecret &&
        (!table.contains("token") || !token.secret.empty()))
        problems.add(table, "token", "at least " + std::to_string(kShortestSecret) + " characters");
    if (!table.contains("role")) problems.add(table, "role", kRoleNames);
    if (!table.contains("project") && role && *role != Role::admin)
        problems.add(table, "project", "the project that the token is for");
    return token;
}

}  // namespace

std::string_view to_string(Role role) {
    for (const auto& [word, known] : kRoles)
        if (known == role) return word;
    return "reader";
}

Result<Tokens> Tokens::read(const std::string& path) {
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    if (!file.is_open() || file.bad())
        return Error{
            Error::Code::unavailable,
            path + " cannot be read: " + std::system_category().message(errno != 0 ? errno : EIO) +
                "; name a file of tokens, or take api.tokens out",
            {}};
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && (status.st_mode & S_IRWXO) != 0)
        return Error{
            Error::Code::invalid, path + ": others may read or write it: chmod o= " + path, {}};
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
    Problems problems(path);
    for (const auto& [key, node] : file) {
        const std::string name(key.str());
        const auto* list = node.as_array();
        if (name != "token" || !list) {
            problems.add(node, name, "[[token]] tables only");
            continue;
        }
        for (const auto& item : *list) {
            const auto* table = item.as_table();
            if (!table) {
                problems.add(item, name, "[[token]] tables only");
                continue;
            }
            Token token = read_token(*table, problems);
            if (!token.secret.empty() && tokens.find(token.secret))
                problems.add(item, "token", "each token once");
            if (token.name.empty()) token.name = token.project.empty() ? "admin" : token.project;
            tokens.tokens_.push_back(std::move(token));
        }
    }
    if (tokens.tokens_.empty() && problems.empty())
        problems.add(path + ": expected at least one [[token]]");
    if (!problems.empty()) return problems.error();
    return tokens;
}

const Token* Tokens::find(std::string_view secret) const {
    const Token* found = nullptr;
    for (const auto& token : tokens_)
        if (same_secret(secret, token.secret)) found = &token;
    return found;
}

}  // namespace sluice::api
