// SPDX-License-Identifier: Apache-2.0
// Table 2 `source`: who may send with which addresses.
#pragma once

#include "dataplane/openflow/tables.hpp"

namespace sluice::nfv {

// One row per (MAC, address block) that an endpoint may use: its own address, each of its
// allowed addresses, or everything (two rows of length 0) when its source check is off.
struct SourceRow {
    VpcId vpc;
    MacAddress mac;
    Prefix address;
    EndpointId endpoint;
    HostId host;
    Cookie cookie;
    [[nodiscard]] openflow::Entry encode() const;
    static Result<SourceRow> decode(const openflow::Entry& entry);
};

extern const openflow::TableSchema kSourceSchema;

}  // namespace sluice::nfv
