// SPDX-License-Identifier: Apache-2.0
//
// sluiced: the gateway.
#include <netinet/in.h>
#include <openvswitch/ofp-errors.h>
#include <rte_version.h>

#include <boost/version.hpp>
#include <cstdio>
#include <string_view>

int main(int argc, char** argv) {
    if (argc == 2 && std::string_view(argv[1]) == "--version") {
        std::printf("sluiced %s (%s, Boost %s, %s)\n", SLUICE_VERSION, rte_version(),
                    BOOST_LIB_VERSION, ofperr_get_description(OFPERR_OFPBRC_BAD_TYPE));
        return 0;
    }
    std::fprintf(stderr, "usage: sluiced --version\n");
    return 2;
}
