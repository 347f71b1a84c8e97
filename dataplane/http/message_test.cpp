// SPDX-License-Identifier: Apache-2.0
#include "dataplane/http/message.hpp"

#include <catch2/catch.hpp>

#include "dataplane/http/client.hpp"
#include "dataplane/http/server.hpp"

using namespace sluice::http;

TEST_CASE("percent-encoding is undone, and refused where it is broken") {
    CHECK(percent_decode("a%2Fb%20c") == "a/b c");
    CHECK(percent_decode(percent_encode("ä/ 100%")) == "ä/ 100%");
    CHECK_FALSE(percent_decode("%"));
    CHECK_FALSE(percent_decode("%4"));
    CHECK_FALSE(percent_decode("%zz"));
}

TEST_CASE("a query is a list of pairs in their order") {
    const auto pairs = parse_query("name=a+b&name=c%26d&&flag");
    REQUIRE(pairs);
    REQUIRE(pairs->size() == 3);
    CHECK((*pairs)[0] == std::pair<std::string, std::string>("name", "a b"));
    CHECK((*pairs)[1] == std::pair<std::string, std::string>("name", "c&d"));
    CHECK((*pairs)[2] == std::pair<std::string, std::string>("flag", ""));
    CHECK_FALSE(parse_query("a=%f"));
}

TEST_CASE("text is UTF-8 or it is not") {
    for (const auto* text : {"", "abc", "\xc3\xa4", "\xe2\x82\xac", "\xed\x9f\xbf", "\xee\x80\x80",
                             "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
        CHECK(is_utf8(text));
    for (const auto* text : {"\xff", "\xfe", "\x80", "\xc3", "\xc3(", "\xc0\xaf", "\xc1\xbf",
                             "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82", "\xf0\x8f\xbf\xbf",
                             "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "a\xf0\x9f\x98"})
        CHECK_FALSE(is_utf8(text));
}

TEST_CASE("a header is found whatever the case of its name") {
    const std::vector<Header> headers = {{"Content-Type", "x"}, {"ETag", "\"1\""}};
    CHECK(find_header(headers, "etag") == "\"1\"");
    CHECK(find_header(headers, "eta").empty());
}

TEST_CASE("an address to listen on says whether it is the loopback") {
    CHECK(parse_listen_address("127.0.0.1:8080")->loopback);
    CHECK(parse_listen_address("localhost:1")->loopback);
    CHECK(parse_listen_address("[::1]:8080")->loopback);
    CHECK_FALSE(parse_listen_address("0.0.0.0:8080")->loopback);
    CHECK_FALSE(parse_listen_address("[::]:8080")->loopback);
    for (const auto* wrong : {"", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:80",
                              "host:80", "127.0.0.1:80x"})
        CHECK_FALSE(parse_listen_address(wrong));
}

TEST_CASE("an origin is a scheme, a host, a port and a prefix") {
    const auto origin = parse_origin("http://[::1]:8080/base/");
    REQUIRE(origin);
    CHECK(origin->host == "::1");
    CHECK(origin->port == 8080);
    CHECK(origin->prefix == "/base");
    CHECK(parse_origin("http://host")->port == 80);
    for (const auto* wrong : {"host:80", "ftp://host", "http://", "http://h:0", "http://h:x"})
        CHECK_FALSE(parse_origin(wrong));
}
