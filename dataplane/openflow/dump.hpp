// SPDX-License-Identifier: Apache-2.0
// Private to the switch: a dump of entries under way. Segments are made as the peer reads
// them, so that a dump of a million entries holds no more than a few hundred kilobytes.
// It resumes after the last key it sent, whatever came and went meanwhile.
#pragma once

#include "dataplane/openflow/session.hpp"

namespace sluice::openflow {

struct Session::Dump {
    FlowRequest request;
    RecordWriter writer;
    std::vector<std::uint8_t> tables;  // those to come, the present one last
    std::optional<EntryKey> after;

    Dump(FlowRequest what, MessageView message) : request(std::move(what)), writer(message) {}
};

}  // namespace sluice::openflow
