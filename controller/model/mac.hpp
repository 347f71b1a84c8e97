// SPDX-License-Identifier: Apache-2.0
// The MAC addresses that the controller gives out: locally administered (IEEE 802c: an
// administratively assigned identifier, second digit 2 and 6), one range each.
#pragma once

#include "dataplane/wire/types.hpp"

namespace sluice::model {

// Of a gateway towards a subnet, by the subnet's number.
constexpr MacAddress gateway_mac(std::uint32_t number) {
    return MacAddress::from_value(0x025c'0000'0000ULL | number);
}
constexpr bool is_gateway_mac(const MacAddress& mac) {
    return mac.bytes[0] == 0x02 && mac.bytes[1] == 0x5c;
}
// Of an endpoint that was created without one, by its number.
constexpr MacAddress endpoint_mac(std::uint32_t number) {
    return MacAddress::from_value(0x065c'0000'0000ULL | number);
}

}  // namespace sluice::model
