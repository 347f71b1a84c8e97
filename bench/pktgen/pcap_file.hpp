// SPDX-License-Identifier: Apache-2.0
// A profile's packets as capture files, instead of on its ports.
#pragma once

#include <cstdint>
#include <string>

#include "bench/pktgen/profile.hpp"
#include "dataplane/wire/result.hpp"

namespace sluice::pktgen {

// Writes `packets` packets, with times of `rate` packets a second, to `file`: those of the
// underlay; those of the uplink, if the profile has one, to `file`.uplink. Ports without
// `gateway_mac` are refused.
Result<void> write_pcap(const Profile& profile, const std::string& file, std::uint64_t packets,
                        double rate);

}  // namespace sluice::pktgen
