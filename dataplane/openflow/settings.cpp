// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/settings.hpp"

#include "dataplane/openflow/tables.hpp"

namespace sluice::openflow {
namespace {

constexpr std::uint32_t in(TableId table) {
    return 1U << table;
}

constexpr SettingSpec kSettings[] = {
    {Setting::nat_ports_per_endpoint, "ports_per_endpoint", "ports", 64, 64512, in(kNatGateway),
     "of each protocol that an endpoint may have, in blocks of 64"},
    {Setting::nat_mapping, "mapping", "", 0, 1, in(kNatGateway),
     "0 endpoint_independent, 1 address_and_port_dependent (RFC 4787 section 4.1)"},
    {Setting::nat_filtering, "filtering", "", 0, 2, in(kNatGateway),
     "0 endpoint_independent, 1 address_dependent, 2 address_and_port_dependent (RFC 4787 "
     "section 5)"},
};

}  // namespace

std::span<const SettingSpec> settings() {
    return kSettings;
}

const SettingSpec* find_setting(Setting id) {
    for (const SettingSpec& spec : kSettings)
        if (spec.id == id) return &spec;
    return nullptr;
}

}  // namespace sluice::openflow
