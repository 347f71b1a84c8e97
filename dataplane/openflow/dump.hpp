// SPDX-License-Identifier: Apache-2.0
// Private to the switch: a dump or an aggregate of entries under way. Segments are made as the
// peer reads them, so that a dump of a million entries holds no more than a few hundred kilobytes.
// It resumes after the last key it looked at, whatever came and went meanwhile.
#pragma once

#include "dataplane/openflow/session.hpp"

namespace sluice::openflow {

struct Session::Dump {
    FlowRequest request;
    Bytes message;  // that asked
    RecordWriter writer;
    std::vector<std::uint8_t> tables;  // those to come, the present one last
    std::optional<EntryKey> after;
    bool ready = false;  // its numbers are up to date
    // An aggregate's.
    EntryStats sum;
    std::uint32_t entries = 0;

    Dump(FlowRequest what, MessageView asked)
        : request(std::move(what)), message(asked.begin(), asked.end()), writer(asked) {}
};

}  // namespace sluice::openflow
