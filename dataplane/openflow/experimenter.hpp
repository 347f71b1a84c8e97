// SPDX-License-Identifier: Apache-2.0
// Private to the codec's .cpp files: this project's own multiparts, which Open vSwitch's
// library must not see (it refuses an experimenter that it does not know).
//
// On the wire (OpenFlow 1.3.5 section 7.3.5.18): header 8, multipart type 0xffff, flags,
// 4 of padding, experimenter, experimenter's type, then the payload, from octet 24.
#pragma once

#include <optional>

#include "dataplane/openflow/codec.hpp"

namespace sluice::openflow {

inline constexpr std::uint8_t kMultipartRequest = 18;
inline constexpr std::uint8_t kMultipartReply = 19;
inline constexpr std::uint16_t kMultipartMore = 1;
inline constexpr std::size_t kExperimenterHeader = 24;

// Nothing, if the message is no multipart of an experimenter. One of a foreign
// experimenter or of an unknown type is the error to answer.
std::optional<Decoded<Kind>> classify_experimenter(MessageView message);
// Only for a message that was so classified.
Query query_of(MessageView message);
std::string_view query_text(MessageView message);

// Appends `text` in as many segments as it needs.
void append_experimenter(Bytes& out, std::uint8_t type, Xid xid, Query query,
                         std::string_view text);

}  // namespace sluice::openflow
