// SPDX-License-Identifier: Apache-2.0
// Whatever octets a peer sends: framing, decoding, and the switch over a backend in memory.
// The first octet of the input says whether a HELLO goes before the rest.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "dataplane/openflow/memory_backend.hpp"
#include "dataplane/openflow/switch.hpp"
#include "dataplane/openflow/tables.hpp"

using namespace sluice;
using namespace sluice::openflow;

namespace {

constexpr std::size_t kLongest = 64 << 10;  // fits the socket's buffer

void fill(MemoryBackend& backend) {
    Changes changes;
    for (std::uint32_t i = 1; i <= 3; ++i) {
        changes.put.push_back(VniRow{Vni{i}, VpcId{i}, Cookie{i}}.encode());
        changes.put.push_back(HostRow{HostId{i}, {IpAddress::v4(be32{i})}, Cookie{i}}.encode());
    }
    changes.put_meters = {{MeterId{1}, 10, 10}};
    backend.apply(std::move(changes));
    PortInfo port;
    port.port = PortId{1};
    port.name = "underlay";
    backend.add_port(port);
}

// Reads and drops what the switch answers.
void drain(int end) {
    std::array<std::uint8_t, 65536> answer;
    while (::recv(end, answer.data(), answer.size(), MSG_DONTWAIT) > 0) continue;
}

void run(const std::uint8_t* data, std::size_t size, bool greeted) {
    boost::asio::io_context loop;
    const auto core = core_tables();
    MemoryBackend backend("fuzz", {core.begin(), core.end()});
    fill(backend);
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
    {
        SwitchSettings settings;
        settings.bundle_messages = 1000;
        Switch server(loop, backend, settings, nullptr);
        if (!server.start()) std::abort();
        server.serve(
            Connection::Socket(loop, boost::asio::generic::stream_protocol(AF_UNIX, 0), ends[0]));
        Bytes input;
        if (greeted) append_hello(input, Xid{1});
        input.insert(input.end(), data, data + size);
        if (::send(ends[1], input.data(), input.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
            ::close(ends[1]);
            return;
        }
        for (int turn = 0; turn < 20 && loop.poll() > 0; ++turn) drain(ends[1]);
    }
    ::close(ends[1]);
    loop.poll();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0 || size > kLongest) return 0;
    run(data + 1, size - 1, (data[0] & 1) == 0);
    return 0;
}
