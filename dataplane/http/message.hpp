// SPDX-License-Identifier: Apache-2.0
// HTTP requests and responses as plain values (RFC 9110), free of any HTTP library.
//
// Plain values, safe from any thread. Bodies and header values are octets: nothing here
// checks their character set.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::http {

struct Header {
    std::string name;
    std::string value;
};

// The first value of a header, whatever the case of its name; empty where there is none.
std::string_view find_header(const std::vector<Header>& headers, std::string_view name);

struct Request {
    std::string method = "GET";
    std::string path = "/";  // still percent-encoded, without the query
    std::string query;       // after '?', still percent-encoded
    std::vector<Header> headers;
    std::string body;

    [[nodiscard]] std::string_view header(std::string_view name) const {
        return find_header(headers, name);
    }
};

struct Response {
    unsigned status = 200;
    std::string content_type = "application/json";  // empty with an empty body
    std::vector<Header> headers;                    // beside Content-Type and Content-Length
    std::string body;

    [[nodiscard]] std::string_view header(std::string_view name) const {
        return find_header(headers, name);
    }
};

// RFC 3986 section 2.1. Nothing where a '%' is not followed by two hexadecimal digits.
std::optional<std::string> percent_decode(std::string_view text);
// Everything but the unreserved characters of RFC 3986 section 2.3 is encoded.
std::string percent_encode(std::string_view text);

// RFC 3629: well-formed, shortest forms, no surrogates, up to U+10FFFF.
bool is_utf8(std::string_view text);

// The pairs of a query (`a=1&b=2`), decoded, in their order; '+' is a space. Nothing where
// percent_decode refuses a part.
std::optional<std::vector<std::pair<std::string, std::string>>> parse_query(std::string_view query);

}  // namespace sluice::http
