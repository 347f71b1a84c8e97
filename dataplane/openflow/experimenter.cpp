// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/experimenter.hpp"

#include <algorithm>

#include "dataplane/openflow/controller_codec.hpp"
#include "dataplane/openflow/switch_codec.hpp"

namespace sluice::openflow {
namespace {

constexpr std::uint16_t kExperimenterMultipart = 0xffff;
// Of one segment; OpenFlow's length field allows 65,535 octets a message.
constexpr std::size_t kLongestText = 60'000;
constexpr std::size_t kDigestRecord = 16;

std::uint64_t get(const std::uint8_t* from, std::size_t octets) {
    std::uint64_t result = 0;
    for (std::size_t i = 0; i < octets; ++i) result = result << 8 | from[i];
    return result;
}
void put(Bytes& out, std::uint64_t value, std::size_t octets) {
    for (std::size_t i = octets; i-- > 0;)
        out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

void append_segment(Bytes& out, std::uint8_t type, Xid xid, Query query, std::string_view text,
                    std::uint16_t flags) {
    put(out, kVersion, 1);
    put(out, type, 1);
    put(out, kExperimenterHeader + text.size(), 2);
    put(out, xid.value, 4);
    put(out, kExperimenterMultipart, 2);
    put(out, flags, 2);
    put(out, 0, 4);
    put(out, kExperimenter, 4);
    put(out, static_cast<std::uint32_t>(query), 4);
    out.insert(out.end(), text.begin(), text.end());
}

}  // namespace

std::string_view to_string(Query query) {
    switch (query) {
        case Query::digest:
            return "digest";
        case Query::explain:
            return "explain";
        case Query::flows:
            return "flows";
        case Query::drops:
            return "drops";
        case Query::gateway:
            return "gateway";
        case Query::limits:
            return "limits";
    }
    return "unknown";
}

std::optional<Decoded<Kind>> classify_experimenter(MessageView message) {
    const Header head = header(message);
    if (head.type != kMultipartRequest && head.type != kMultipartReply) return std::nullopt;
    if (message.size() < 16) return error::kBadLength;
    if (get(message.data() + 8, 2) != kExperimenterMultipart) return std::nullopt;
    if (message.size() < kExperimenterHeader) return error::kBadLength;
    // Those of other experimenters are the library's to know or refuse.
    if (get(message.data() + 16, 4) != kExperimenter) return std::nullopt;
    const auto type = get(message.data() + 20, 4);
    if (type < static_cast<std::uint32_t>(Query::digest) ||
        type > static_cast<std::uint32_t>(Query::limits))
        return error::kBadExperimenterType;
    return head.type == kMultipartRequest ? Kind::experimenter_request : Kind::experimenter_reply;
}

Query query_of(MessageView message) {
    return static_cast<Query>(get(message.data() + 20, 4));
}

std::string_view query_text(MessageView message) {
    const auto text = message.subspan(kExperimenterHeader);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
}

void append_experimenter(Bytes& out, std::uint8_t type, Xid xid, Query query,
                         std::string_view text) {
    while (text.size() > kLongestText) {
        append_segment(out, type, xid, query, text.substr(0, kLongestText), kMultipartMore);
        text.remove_prefix(kLongestText);
    }
    append_segment(out, type, xid, query, text, 0);
}

bool has_more(MessageView multipart_reply) {
    return (get(multipart_reply.data() + 10, 2) & kMultipartMore) != 0;
}

bool has_more_segments(MessageView multipart_request) {
    return has_more(multipart_request);
}

void append_query(Bytes& out, Xid xid, Query query, std::string_view text) {
    append_experimenter(out, kMultipartRequest, xid, query, text);
}

Decoded<ExperimenterRequest> decode_experimenter_request(MessageView message) {
    return ExperimenterRequest{query_of(message), query_text(message)};
}

void append_experimenter_reply(Bytes& out, MessageView request, Query query,
                               std::string_view text) {
    append_experimenter(out, kMultipartReply, header(request).xid, query, text);
}

void append_digest_reply(Bytes& out, MessageView request, std::span<const TableDigest> digests) {
    Bytes records;
    for (const TableDigest& digest : digests) {
        put(records, digest.table, 1);
        put(records, 0, 3);
        put(records, digest.count, 4);
        put(records, digest.sum, 8);
    }
    append_experimenter_reply(out, request, Query::digest,
                              {reinterpret_cast<const char*>(records.data()), records.size()});
}

Decoded<QueryReply> decode_query_reply(MessageView message) {
    return QueryReply{query_of(message), query_text(message)};
}

Decoded<std::vector<TableDigest>> decode_digests(std::string_view text) {
    if (text.size() % kDigestRecord != 0) return error::kBadLength;
    std::vector<TableDigest> result;
    for (; !text.empty(); text.remove_prefix(kDigestRecord)) {
        const auto* record = reinterpret_cast<const std::uint8_t*>(text.data());
        result.push_back(
            {record[0], static_cast<std::uint32_t>(get(record + 4, 4)), get(record + 8, 8)});
    }
    return result;
}

}  // namespace sluice::openflow
