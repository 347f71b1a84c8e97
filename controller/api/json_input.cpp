// SPDX-License-Identifier: Apache-2.0
#include "controller/api/json_input.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/parser.hpp>
#include <boost/json/serialize.hpp>
#include <set>
#include <string>
#include <vector>

namespace sluice::api {
namespace {

namespace json = boost::json;
using boost::system::error_code;

constexpr std::size_t kDeepest = 16;

// Sees a text pass by and stops at the first name that its object has already.
struct Names {
    static constexpr std::size_t max_object_size = std::size_t(-1);
    static constexpr std::size_t max_array_size = std::size_t(-1);
    static constexpr std::size_t max_key_size = std::size_t(-1);
    static constexpr std::size_t max_string_size = std::size_t(-1);

    std::vector<std::set<std::string>> objects;
    std::string name;
    bool is_twice = false;

    bool on_object_begin(error_code&) {
        objects.emplace_back();
        return true;
    }
    bool on_object_end(std::size_t, error_code&) {
        objects.pop_back();
        return true;
    }
    bool on_key_part(json::string_view part, std::size_t, error_code&) {
        name += part;
        return true;
    }
    bool on_key(json::string_view part, std::size_t, error_code& error) {
        name += part;
        if (!objects.back().insert(name).second) {
            is_twice = true;
            error = json::make_error_code(json::error::syntax);
            return false;
        }
        name.clear();
        return true;
    }
    bool on_document_begin(error_code&) { return true; }
    bool on_document_end(error_code&) { return true; }
    bool on_array_begin(error_code&) { return true; }
    bool on_array_end(std::size_t, error_code&) { return true; }
    bool on_string_part(json::string_view, std::size_t, error_code&) { return true; }
    bool on_string(json::string_view, std::size_t, error_code&) { return true; }
    bool on_number_part(json::string_view, error_code&) { return true; }
    bool on_int64(std::int64_t, json::string_view, error_code&) { return true; }
    bool on_uint64(std::uint64_t, json::string_view, error_code&) { return true; }
    bool on_double(double, json::string_view, error_code&) { return true; }
    bool on_bool(bool, error_code&) { return true; }
    bool on_null(error_code&) { return true; }
    bool on_comment_part(json::string_view, error_code&) { return true; }
    bool on_comment(json::string_view, error_code&) { return true; }
};

Error invalid(std::string sentence) {
    return {Error::Code::invalid, std::move(sentence), {}};
}

}  // namespace

Result<json::value> parse_body(std::string_view body) {
    json::parse_options options;
    options.max_depth = kDeepest;
    json::parser parser({}, options);
    error_code error;
    const auto consumed = parser.write_some(body, error);
    if (!error && consumed < body.size()) error = json::make_error_code(json::error::extra_data);
    if (error)
        return invalid("the body is not JSON: " + error.message() + " near octet " +
                       std::to_string(consumed));
    json::basic_parser<Names> names(options);
    names.write_some(false, body.data(), body.size(), error);
    if (names.handler().is_twice)
        return invalid("the body has the member " +
                       json::serialize(json::value(names.handler().name)) + " twice in one object");
    return parser.release();
}

}  // namespace sluice::api
