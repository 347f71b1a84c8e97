// SPDX-License-Identifier: Apache-2.0
#include "dataplane/http/client.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <optional>

namespace sluice::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;
using tcp = asio::ip::tcp;

bool is_safe(const std::string& method) {
    return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

}  // namespace

struct Client::Impl {
    Origin origin;
    std::chrono::milliseconds timeout;
    std::size_t limit;
    asio::io_context context;
    std::optional<beast::tcp_stream> stream;
    beast::flat_buffer buffer;

    // Runs one asynchronous operation to its end, so that the stream's deadline holds.
    template <class Start>
    error_code run(Start start) {
        error_code result = asio::error::operation_aborted;
        start([&result](error_code error, auto&&...) { result = error; });
        context.restart();
        context.run();
        return result;
    }

    Error failed(const char* doing, const error_code& error) {
        stream.reset();
        return Error{Error::Code::unavailable,
                     std::string(doing) + " " + origin.host + ":" + std::to_string(origin.port) +
                         ": " + error.message(),
                     {}};
    }

    error_code connect() {
        error_code error;
        tcp::resolver resolver(context);
        const auto found = resolver.resolve(origin.host, std::to_string(origin.port), error);
        if (error) return error;
        stream.emplace(context);
        buffer.clear();
        stream->expires_after(timeout);
        error = run([&](auto done) { stream->async_connect(found, done); });
        if (!error) stream->socket().set_option(tcp::no_delay(true), error);
        return error;
    }

    Result<Response> send(const Request& request) {
        beast::http::request<beast::http::string_body> message;
        message.version(11);
        message.method_string(request.method);
        message.target(origin.prefix + request.path +
                       (request.query.empty() ? "" : "?" + request.query));
        const bool six = origin.host.find(':') != std::string::npos;
        message.set(beast::http::field::host, (six ? "[" + origin.host + "]" : origin.host) + ":" +
                                                  std::to_string(origin.port));
        for (const auto& header : request.headers) message.insert(header.name, header.value);
        message.body() = request.body;
        message.prepare_payload();

        for (bool reused = stream.has_value();; reused = false) {
            if (!stream)
                if (const auto error = connect()) return failed("cannot connect to", error);
            stream->expires_after(timeout);
            beast::http::response_parser<beast::http::string_body> parser;
            parser.body_limit(limit);
            const auto written = run(
                [&](auto done) { beast::http::async_write(*stream, message, std::move(done)); });
            // A server that refuses a body answers before it has read all of it.
            const auto read = run([&](auto done) {
                beast::http::async_read(*stream, buffer, parser, std::move(done));
            });
            if (read) {
                const bool nothing_came = !parser.got_some();
                if (reused && nothing_came && is_safe(request.method)) {
                    stream.reset();
                    continue;
                }
                return failed("no answer from", written ? written : read);
            }
            const auto& answer = parser.get();
            if (written || !answer.keep_alive()) stream.reset();
            return plain(parser.release());
        }
    }

    static Response plain(beast::http::response<beast::http::string_body> message) {
        Response response;
        response.status = message.result_int();
        response.content_type = std::string(message[beast::http::field::content_type]);
        for (const auto& field : message)
            response.headers.push_back(
                {std::string(field.name_string()), std::string(field.value())});
        response.body = std::move(message.body());
        return response;
    }
};

Client::Client(Origin origin, std::chrono::milliseconds timeout, std::size_t response_limit)
    : impl_(std::make_unique<Impl>()) {
    impl_->origin = std::move(origin);
    impl_->timeout = timeout;
    impl_->limit = response_limit;
}
Client::~Client() = default;

Result<Response> Client::send(const Request& request) {
    return impl_->send(request);
}

}  // namespace sluice::http
