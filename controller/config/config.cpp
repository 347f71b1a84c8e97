// SPDX-License-Identifier: Apache-2.0
#include "controller/config/config.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

namespace sluice::config {
namespace {

// Walks the tables of the file; whatever it does not know is a problem.
class Reader {
  public:
    explicit Reader(Parsed& parsed) : parsed_(parsed) {}

    void read(const toml::table& file) {
        for (const auto& [key, node] : file) {
            const std::string name(key.str());
            const auto* table = node.as_table();
            if (name != "api" && name != "openflow" && name != "telemetry" && name != "store") {
                fail(node, name, "expected one of [api], [openflow], [telemetry], [store]");
                continue;
            }
            if (!table) {
                fail(node, name, "expected a table");
                continue;
            }
            for (const auto& [inner, value] : *table)
                read_key(name + "." + std::string(inner.str()), value);
        }
        const auto& [api, telemetry] = std::pair(parsed_.config.api, parsed_.config.telemetry);
        if (api.address == telemetry.address && api.port == telemetry.port)
            parsed_.problems.push_back({parsed_.line_of("telemetry.listen"), "telemetry.listen",
                                        "expected another address or port than api.listen's"});
        if (parsed_.config.openflow.empty()) parsed_.config.openflow.emplace_back(kDefaultOpenflow);
    }

  private:
    static constexpr const char* kDefaultOpenflow = "unix:/run/sluice/controller.of";

    void read_key(const std::string& key, const toml::node& node) {
        parsed_.lines[key] = node.source().begin.line;
        if (key == "api.listen") return read_listen(key, node, parsed_.config.api);
        if (key == "telemetry.listen") return read_listen(key, node, parsed_.config.telemetry);
        if (key == "api.tokens") return read_text(key, node, parsed_.config.tokens);
        if (key == "store.url") return read_text(key, node, parsed_.config.store);
        if (key == "openflow.listen") return read_openflow(key, node);
        if (key == "openflow.compare_seconds")
            return read_seconds(key, node, parsed_.config.compare);
        if (key == "openflow.certificate" || key == "openflow.key" || key == "openflow.ca" ||
            key == "api.certificate" || key == "api.key")
            return fail(node, key, "tls is not supported by this release");
        fail(node, key, "unknown key; controller.example.toml has those that there are");
    }

    void read_text(const std::string& key, const toml::node& node, std::string& target) {
        const auto text = node.value<std::string>();
        if (!node.is_string() || !text || text->empty())
            return fail(node, key, "expected a string that is not empty");
        target = *text;
    }

    void read_seconds(const std::string& key, const toml::node& node,
                      std::chrono::seconds& target) {
        constexpr std::int64_t kMost = 86'400;
        const auto number = node.value<std::int64_t>();
        if (!node.is_integer() || !number || *number < 0 || *number > kMost)
            return fail(node, key, "expected a whole number of seconds from 0 to 86400");
        target = std::chrono::seconds(*number);
    }

    // Without TLS nothing but the loopback may be listened on.
    void read_listen(const std::string& key, const toml::node& node, http::ListenAddress& target) {
        std::string text;
        read_text(key, node, text);
        if (text.empty()) return;
        const auto address = http::parse_listen_address(text);
        if (!address) return fail(node, key, address.error().message);
        if (!address->loopback)
            return fail(node, key,
                        "expected an address of the loopback: others need tls, which this release "
                        "does not have");
        if (address->port == 0) return fail(node, key, "expected a port from 1 to 65535");
        target = *address;
    }

    void read_openflow(const std::string& key, const toml::node& node) {
        if (const auto* list = node.as_array()) {
            if (list->empty())
                fail(node, key, "expected at least one of unix:PATH, tcp:ADDRESS:PORT");
            for (const auto& item : *list) add_openflow(key, item);
            return;
        }
        add_openflow(key, node);
    }
    void add_openflow(const std::string& key, const toml::node& node) {
        std::string text;
        read_text(key, node, text);
        if (text.empty()) return;
        if (text.starts_with("tls:"))
            return fail(node, key, "tls: is not supported by this release; use unix: or tcp:");
        if (!text.starts_with("unix:") && !text.starts_with("tcp:"))
            return fail(node, key, "expected unix:PATH or tcp:ADDRESS:PORT");
        if (text.starts_with("tcp:") && text.ends_with(":0"))
            return fail(node, key, "expected a port from 1 to 65535");
        auto& listening = parsed_.config.openflow;
        if (std::find(listening.begin(), listening.end(), text) != listening.end())
            return fail(node, key, "expected each socket once");
        listening.push_back(text);
    }

    void fail(const toml::node& node, const std::string& key, std::string message) {
        parsed_.problems.push_back({node.source().begin.line, key, std::move(message)});
    }

    Parsed& parsed_;
};

}  // namespace

std::string to_string(const Problem& problem, std::string_view file) {
    std::string text(file);
    if (problem.line != 0) text += ":" + std::to_string(problem.line);
    if (!problem.key.empty()) text += ": " + problem.key;
    return text + ": " + problem.message;
}

Parsed parse_controller(std::string_view text) {
    Parsed parsed;
    try {
        Reader(parsed).read(toml::parse(text));
    } catch (const toml::parse_error& error) {
        parsed.problems.push_back(
            {error.source().begin.line, {}, std::string(error.description())});
    }
    return parsed;
}

Parsed read_controller(const std::string& path) {
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    if (!file.is_open() || file.bad()) {
        Parsed parsed;
        parsed.problems.push_back(
            {0,
             {},
             "cannot be read: " + std::system_category().message(errno != 0 ? errno : EIO) +
                 "; name a TOML file that exists and is readable"});
        return parsed;
    }
    return parse_controller(text);
}

}  // namespace sluice::config
