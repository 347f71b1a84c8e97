// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/errors.hpp"

#include <algorithm>

#include "dataplane/openflow/ovs.hpp"

namespace sluice::openflow {
namespace {

constexpr std::uint16_t kErrorType = 1;
constexpr std::uint16_t kExperimenterError = 0xffff;
constexpr std::size_t kHeader = 8;
constexpr std::size_t kLongestSentence = 1024;
constexpr std::size_t kQuoted = 64;  // octets of the request: OpenFlow 1.3.5 section 7.4.4

void put16(Bytes& out, std::uint16_t value) {
    out.push_back(static_cast<std::uint8_t>(value >> 8));
    out.push_back(static_cast<std::uint8_t>(value));
}
void put32(Bytes& out, std::uint32_t value) {
    put16(out, static_cast<std::uint16_t>(value >> 16));
    put16(out, static_cast<std::uint16_t>(value));
}
std::uint32_t get(MessageView message, std::size_t offset, std::size_t octets) {
    std::uint32_t result = 0;
    for (std::size_t i = 0; i < octets; ++i) result = result << 8 | message[offset + i];
    return result;
}

void append_error(Bytes& out, const ErrorCode& code, Xid xid, MessageView data) {
    const std::size_t start = out.size();
    out.push_back(kVersion);
    out.push_back(kErrorType);
    put16(out, 0);
    put32(out, xid.value);
    if (code.experimenter == 0) {
        put16(out, code.type);
        put16(out, code.code);
    } else {
        put16(out, kExperimenterError);
        put16(out, code.type);
        put32(out, code.experimenter);
    }
    out.insert(out.end(), data.begin(), data.end());
    const std::size_t length = out.size() - start;
    out[start + 2] = static_cast<std::uint8_t>(length >> 8);
    out[start + 3] = static_cast<std::uint8_t>(length);
}

// What follows the quoted octets of the request, if it is text: other switches quote more of the
// request than 64 octets.
std::string_view sentence_of(MessageView data) {
    if (data.size() < kHeader) return {};
    const std::size_t quoted = std::min<std::size_t>(get(data, 2, 2), kQuoted);
    if (data.size() <= quoted || quoted < kHeader) return {};
    const MessageView rest = data.subspan(quoted);
    if (std::any_of(rest.begin(), rest.end(), [](auto c) { return c < ' ' || c == 0x7f; }))
        return {};
    return {reinterpret_cast<const char*>(rest.data()), rest.size()};
}

}  // namespace

std::string to_string(const ErrorCode& code) {
    // The library decodes errors, not their numbers: give it a message that carries them.
    alignas(8) const std::uint8_t request[kHeader] = {kVersion, 0, 0, kHeader};
    Bytes message;
    append_error(message, code, request);
    const ofperr known = ofperr_decode_msg(ovs::as_header(message), nullptr);
    if (known != 0) return ofperr_get_name(known);
    return "error type " + std::to_string(code.type) + " code " + std::to_string(code.code) +
           (code.experimenter != 0 ? " of experimenter " + std::to_string(code.experimenter) : "");
}

void append_error(Bytes& out, const ErrorCode& code, MessageView request,
                  std::string_view sentence) {
    Bytes data;
    const MessageView quoted = request.first(std::min(request.size(), kQuoted));
    sentence = sentence.substr(0, kLongestSentence);
    data.reserve(quoted.size() + sentence.size());
    data.insert(data.end(), quoted.begin(), quoted.end());
    data.insert(data.end(), sentence.begin(), sentence.end());
    append_error(out, code, header(request).xid, data);
}

void append_refusal(Bytes& out, std::string_view sentence, MessageView request) {
    sentence = sentence.substr(0, kLongestSentence);
    append_error(out, error::kQueryRefused, header(request).xid,
                 {reinterpret_cast<const std::uint8_t*>(sentence.data()), sentence.size()});
}

Decoded<RemoteError> decode_error(MessageView message) {
    if (message.size() < kHeader + 4) return error::kBadLength;
    RemoteError result;
    result.xid = header(message).xid;
    result.code.type = static_cast<std::uint16_t>(get(message, kHeader, 2));
    result.code.code = static_cast<std::uint16_t>(get(message, kHeader + 2, 2));
    if (result.code.type == kExperimenterError) {
        if (message.size() < kHeader + 8) return error::kBadLength;
        result.code = {result.code.code, 0, get(message, kHeader + 4, 4)};
    }
    const MessageView data = message.subspan(kHeader + (result.code.experimenter != 0 ? 8 : 4));
    if (result.code == error::kQueryRefused) {
        result.text.assign(data.begin(), data.end());
        return result;
    }
    result.text = to_string(result.code);
    if (const auto sentence = sentence_of(data); !sentence.empty())
        result.text = std::string(sentence) + " (" + result.text + ")";
    return result;
}

}  // namespace sluice::openflow
