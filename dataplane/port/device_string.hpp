// SPDX-License-Identifier: Apache-2.0
// What the gateway adds to a device string where the operator left it out, so that a driver's
// own defaults do not limit it. A key that is present is never changed. Free of DPDK.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "dataplane/config/config.hpp"

namespace sluice::port {

// The arguments to probe the device with.
std::string with_defaults(const config::Port& port, std::size_t workers);

// The MTU of an interface that exists.
std::optional<unsigned> interface_mtu(const std::string& interface);
bool set_interface_mtu(const std::string& interface, unsigned mtu);

}  // namespace sluice::port
