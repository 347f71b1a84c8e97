// SPDX-License-Identifier: Apache-2.0
// Every table of the product, as sluiced has them.
#pragma once

#include <vector>

#include "dataplane/openflow/tables.hpp"
#include "nfv/anti_spoof/table.hpp"
#include "nfv/elastic_ip/table.hpp"
#include "nfv/gateway_address/table.hpp"
#include "nfv/nat_gateway/table.hpp"
#include "nfv/security_group/table.hpp"

namespace sluice::interop {

inline std::vector<const openflow::TableSchema*> all_tables() {
    const auto core = openflow::core_tables();
    std::vector<const openflow::TableSchema*> tables(core.begin(), core.end());
    for (const openflow::TableSchema* schema :
         {&nfv::kSourceSchema, &nfv::kLocalSchema, &nfv::kElasticIpSchema,
          &nfv::kPublicAddressSchema, &nfv::kNatGatewaySchema, &nfv::kEgressGroupSchema,
          &nfv::kEgressRuleSchema, &nfv::kIngressGroupSchema, &nfv::kIngressRuleSchema})
        tables.push_back(schema);
    return tables;
}

}  // namespace sluice::interop
