// SPDX-License-Identifier: Apache-2.0
// A switch with the product's tables and no gateway behind it, for the peers to talk to:
//   memory_switch unix:SOCKET [CONTROLLER...]
// It ends when its input does. Short time-outs, so that a test need not wait.
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/signal_set.hpp>
#include <cstdio>

#include "dataplane/openflow/memory_backend.hpp"
#include "dataplane/openflow/switch.hpp"
#include "tests/interop/tables.hpp"

using namespace sluice;

int main(int count, char** arguments) try {
    if (count < 2) {
        std::fputs("usage: memory_switch unix:SOCKET [CONTROLLER...]\n", stderr);
        return 2;
    }
    boost::asio::io_context loop;
    openflow::MemoryBackend backend("memory", interop::all_tables());
    const char* const names[] = {"underlay", "uplink"};
    for (std::uint32_t number = 1; number <= 2; ++number) {
        openflow::PortInfo port;
        port.port = PortId{number};
        port.name = names[number - 1];
        port.mac = MacAddress::from_value(0x020000000000 + number);
        port.link_up = true;
        port.speed_mbps = 10'000;
        port.rx_packets = 1000 * number;
        backend.add_port(port);
        openflow::Changes changes;
        changes.put.push_back(
            openflow::PortRow{port.port, number == 1 ? Side::underlay : Side::uplink}.encode());
        backend.apply(std::move(changes));
    }
    openflow::SwitchSettings settings;
    settings.listen = arguments[1];
    settings.controllers.assign(arguments + 2, arguments + count);
    settings.bundle_messages = 300'000;
    settings.limits.hello = std::chrono::seconds(2);
    settings.limits.partial_message = std::chrono::seconds(2);
    settings.limits.stalled_write = std::chrono::seconds(3);
    openflow::Switch server(loop, backend, settings, [](const std::string& sentence) {
        std::fprintf(stderr, "%s\n", sentence.c_str());
    });
    if (const auto started = server.start(); !started) {
        std::fprintf(stderr, "%s: %s\n", started.error().path.c_str(),
                     started.error().message.c_str());
        return 2;
    }
    boost::asio::posix::stream_descriptor input(loop, ::dup(STDIN_FILENO));
    std::array<char, 1> octet;
    boost::asio::async_read(input, boost::asio::buffer(octet),
                            [&](const boost::system::error_code&, std::size_t) { loop.stop(); });
    loop.run();
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
