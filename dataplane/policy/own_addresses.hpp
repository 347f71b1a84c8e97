// SPDX-License-Identifier: Apache-2.0
// Addresses that the configuration gives to the gateway itself or to a neighbour of it, so that
// no table may give them to anybody else.
//
// A value, made once at the start. Threads: any, once it is complete. Cost: a search in a tree.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "dataplane/wire/types.hpp"

namespace sluice::policy {

class OwnAddresses {
  public:
    enum class Whose : std::uint8_t { gateway, neighbour };
    struct Owner {
        Whose whose = Whose::gateway;
        std::string what;  // "the gateway's own address on port 2"
    };

    // Of two owners of one address the first counts.
    void add(const IpAddress& address, Whose whose, std::string what) {
        owners_.try_emplace(address, Owner{whose, std::move(what)});
    }
    // nullptr: nobody's.
    [[nodiscard]] const Owner* find(const IpAddress& address) const {
        const auto at = owners_.find(address);
        return at == owners_.end() ? nullptr : &at->second;
    }

  private:
    std::map<IpAddress, Owner> owners_;
};

}  // namespace sluice::policy
