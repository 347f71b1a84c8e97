// SPDX-License-Identifier: Apache-2.0
// The controller's API as sluicectl uses it: JSON in, JSON or a readable failure out.
//
// One object, one thread; every call blocks for at most `patience`, and as long to connect.
#pragma once

#include <boost/json/value.hpp>
#include <chrono>
#include <string>
#include <string_view>

#include "dataplane/http/client.hpp"

namespace sluice::cli {

namespace json = boost::json;

// What the shell gets. `refused` is every 4xx and 5xx; `pending` a --wait that ran out.
enum ExitStatus : int { done = 0, refused = 1, usage = 2, unreachable = 3, pending = 4 };

// Thrown by the helpers below and caught in main: the text is for people.
struct Failure {
    ExitStatus status = refused;
    std::string text;
};

class Api {
  public:
    // `url` as in SLUICE_API. Throws Failure where it cannot be one.
    Api(const std::string& url, std::string token, std::chrono::seconds patience);

    // The body of a 2xx. Throws Failure with the problem document made readable.
    json::value call(std::string_view method, const std::string& path,
                     const std::string& query = {}, const json::value* body = nullptr);

    // Every item of a list, page by page.
    json::array list(const std::string& path, const std::string& query = {});

  private:
    http::Client client_;
    std::string token_;
};

// "a=1&b=2", encoded; nothing for an empty value.
void add_query(std::string& query, std::string_view name, std::string_view value);

// A problem document (RFC 9457) as a few lines.
std::string describe_problem(unsigned status, const std::string& body);

}  // namespace sluice::cli
