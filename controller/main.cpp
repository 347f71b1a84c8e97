// SPDX-License-Identifier: Apache-2.0
//
// sluice-controller: desired state, REST API, OpenFlow to the gateways.
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <string_view>

int main(int argc, char** argv) {
    if (argc == 2 && std::string_view(argv[1]) == "--version") {
        boost::asio::io_context context;
        context.run();
        std::printf("sluice-controller %s\n", SLUICE_VERSION);
        return 0;
    }
    std::fprintf(stderr, "usage: sluice-controller --version\n");
    return 2;
}
