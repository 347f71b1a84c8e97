// SPDX-License-Identifier: Apache-2.0
//
// sluicectl: the command line for people.
#include <cstdio>
#include <string_view>

int main(int argc, char** argv) {
    if (argc == 2 && std::string_view(argv[1]) == "--version") {
        std::printf("sluicectl %s\n", SLUICE_VERSION);
        return 0;
    }
    std::fprintf(stderr, "usage: sluicectl --version\n");
    return 2;
}
