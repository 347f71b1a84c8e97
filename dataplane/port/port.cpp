// SPDX-License-Identifier: Apache-2.0
#include "dataplane/port/port.hpp"

#include <fmt/format.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mempool.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>

#include "dataplane/port/device_string.hpp"
#include "dataplane/port/eal.hpp"

namespace sluice::port {
namespace {

constexpr std::uint16_t kDescriptors = 1024;
constexpr unsigned kMempoolCache = 256;

Error failure(std::size_t index, std::string_view key, std::string message) {
    if (const auto cause = first_complaint(); !cause.empty())
        message += fmt::format(" ({})", cause);
    return {Error::Code::unavailable, std::move(message), fmt::format("port[{}].{}", index, key)};
}

Result<std::uint16_t> probe(const config::Config& config, std::size_t index) {
    const auto& wanted = config.ports[index];
    forget_complaints();
    if (!wanted.is_pci()) {
        const auto arguments = with_defaults(wanted, config.workers.size());
        if (rte_dev_probe(arguments.c_str()) < 0)
            return failure(index, "device",
                           fmt::format("\"{}\" cannot be opened; check that the driver, and its "
                                       "interface or file, exist and that no other program uses it",
                                       wanted.device));
    }
    std::uint16_t device = 0;
    if (rte_eth_dev_get_port_by_name(std::string(wanted.device_name()).c_str(), &device) != 0)
        return failure(
            index, "device",
            fmt::format("\"{}\" is no network device that DPDK has a driver for", wanted.device));
    return device;
}

// The queue counts, and the offloads, that the device offers out of those we can use.
rte_eth_conf choose(const rte_eth_dev_info& info, std::size_t workers, Port& port) {
    rte_eth_conf conf{};
    const auto limit = [&](std::uint16_t most) {
        return static_cast<std::uint16_t>(
            std::min<std::size_t>(workers, std::max<std::uint16_t>(most, 1)));
    };
    port.rx_queues = limit(info.max_rx_queues);
    port.tx_queues = limit(info.max_tx_queues);
    const auto rss =
        info.flow_type_rss_offloads & (RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP |
                                       RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_IPV6);
    if (port.rx_queues > 1 && rss != 0) {
        conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        conf.rx_adv_conf.rss_conf.rss_hf = rss;
        port.offloads.rss = true;
    }
    const auto rx = [&](std::uint64_t bit) {
        conf.rxmode.offloads |= info.rx_offload_capa & bit;
        return (info.rx_offload_capa & bit) != 0;
    };
    const auto tx = [&](std::uint64_t bit) {
        conf.txmode.offloads |= info.tx_offload_capa & bit;
        return (info.tx_offload_capa & bit) != 0;
    };
    port.offloads.rx_ipv4_checksum = rx(RTE_ETH_RX_OFFLOAD_IPV4_CKSUM);
    port.offloads.rx_scatter = rx(RTE_ETH_RX_OFFLOAD_SCATTER);
    port.offloads.tx_ipv4_checksum = tx(RTE_ETH_TX_OFFLOAD_IPV4_CKSUM);
    port.offloads.tx_multi_segment = tx(RTE_ETH_TX_OFFLOAD_MULTI_SEGS);
    return conf;
}

// The MTU to configure the device with. Virtual devices on the kernel's interfaces report a
// largest frame of 1,518 octets and yet carry whatever the interface does: there the interface
// decides.
Result<std::uint16_t> check_mtu(const config::Port& wanted, const rte_eth_dev_info& info,
                                std::size_t index) {
    const std::string interface(wanted.interface());
    // A TAP interface is the driver's own, fresh with 1,500.
    if (wanted.device_name().starts_with("net_tap")) set_interface_mtu(interface, wanted.mtu);
    if (const auto mtu = interface_mtu(interface); mtu && *mtu < wanted.mtu)
        return Error{Error::Code::unavailable,
                     fmt::format("the interface {} has an MTU of {}, not {}; "
                                 "run: ip link set {} mtu {}",
                                 interface, *mtu, wanted.mtu, interface, wanted.mtu),
                     fmt::format("port[{}].mtu", index)};
    const std::uint32_t overhead = info.max_mtu != UINT16_MAX && info.max_rx_pktlen > info.max_mtu
                                       ? info.max_rx_pktlen - info.max_mtu
                                       : RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
    const auto most = std::min<std::uint32_t>(info.max_mtu, info.max_rx_pktlen - overhead);
    if (wanted.mtu <= most) return wanted.mtu;
    // The TAP driver means it: it refuses to send what is longer.
    if (!wanted.is_pci() && !wanted.device_name().starts_with("net_tap"))
        return static_cast<std::uint16_t>(most);
    return Error{
        Error::Code::unavailable,
        fmt::format("the device carries an MTU of at most {0}, not {1}; set `mtu = {2}` "
                    "in this [[port]]",
                    most, wanted.mtu, most < 1600 ? std::min<std::uint32_t>(most, 1500) : most),
        fmt::format("port[{}].mtu", index)};
}

// A device that cannot take another address receives for it all the same when promiscuous: the
// workers compare the destination themselves.
void set_mac(const MacAddress& wanted, Port& port) {
    rte_ether_addr mac{};
    if (wanted.is_zero()) {
        rte_eth_macaddr_get(port.device, &mac);
        std::copy_n(mac.addr_bytes, 6, port.mac.bytes.begin());
        return;
    }
    std::copy(wanted.bytes.begin(), wanted.bytes.end(), mac.addr_bytes);
    if (rte_eth_dev_default_mac_addr_set(port.device, &mac) != 0)
        rte_eth_promiscuous_enable(port.device);
    port.mac = wanted;
}

}  // namespace

Result<void> Ports::create_pools(const config::Config& config) {
    // A pool on each NUMA node that has a worker; the buffers are divided among them.
    std::set<unsigned> nodes;
    for (unsigned worker = 0; worker < workers_; ++worker)
        nodes.insert(rte_lcore_to_socket_id(worker + 1));
    const auto each = static_cast<unsigned>(config.memory.packet_buffers / nodes.size());
    for (const unsigned node : nodes) {
        const auto name = fmt::format("buffers_{}", node);
        forget_complaints();
        auto* pool = rte_pktmbuf_pool_create(
            name.c_str(), each, kMempoolCache, 0,
            static_cast<std::uint16_t>(buffer_octets(config) + RTE_PKTMBUF_HEADROOM),
            static_cast<int>(node));
        if (pool == nullptr)
            return Error{Error::Code::exhausted,
                         fmt::format("no memory for {} packet buffers on NUMA node {}: {}; lower "
                                     "packet_buffers or give the machine more memory",
                                     each, node, rte_strerror(rte_errno)),
                         "memory.packet_buffers"};
        pools_.push_back(pool);
        for (unsigned worker = 0; worker < workers_; ++worker)
            if (rte_lcore_to_socket_id(worker + 1) == node) worker_pool_[worker] = pool;
    }
    return {};
}

Result<void> Ports::start(const config::Config& config, std::size_t index) {
    const auto& wanted = config.ports[index];
    auto device = probe(config, index);
    if (!device) return device.error();

    Port port;
    port.id = PortId{static_cast<std::uint32_t>(index + 1)};
    port.device = *device;
    port.role = wanted.role;
    port.name = wanted.device_name();
    port.mtu = wanted.mtu;
    port.addresses = wanted.addresses;
    port.next_hops = wanted.next_hops;

    rte_eth_dev_info info{};
    if (const int code = rte_eth_dev_info_get(*device, &info); code != 0)
        return failure(
            index, "device",
            fmt::format("the device tells nothing about itself: {}", rte_strerror(-code)));
    port.driver = info.driver_name;
    auto mtu = check_mtu(wanted, info, index);
    if (!mtu) return mtu.error();
    auto conf = choose(info, workers_, port);
    conf.rxmode.mtu = *mtu;
    forget_complaints();
    if (const int code = rte_eth_dev_configure(*device, port.rx_queues, port.tx_queues, &conf);
        code != 0)
        return failure(index, "device",
                       fmt::format("the device refuses {} receive and {} transmit "
                                   "queues: {}",
                                   port.rx_queues, port.tx_queues, rte_strerror(-code)));
    std::uint16_t rx_descriptors = kDescriptors, tx_descriptors = kDescriptors;
    rte_eth_dev_adjust_nb_rx_tx_desc(*device, &rx_descriptors, &tx_descriptors);
    const int socket = rte_eth_dev_socket_id(*device);
    const auto node = socket < 0 ? SOCKET_ID_ANY : static_cast<unsigned>(socket);
    for (std::uint16_t queue = 0; queue < port.rx_queues; ++queue)
        if (const int code = rte_eth_rx_queue_setup(*device, queue, rx_descriptors, node, nullptr,
                                                    worker_pool_[queue]);
            code != 0)
            return failure(index, "device",
                           fmt::format("receive queue {}: {}", queue, rte_strerror(-code)));
    for (std::uint16_t queue = 0; queue < port.tx_queues; ++queue)
        if (const int code = rte_eth_tx_queue_setup(*device, queue, tx_descriptors, node, nullptr);
            code != 0)
            return failure(index, "device",
                           fmt::format("transmit queue {}: {}", queue, rte_strerror(-code)));
    if (const int code = rte_eth_dev_start(*device); code != 0)
        return failure(index, "device",
                       fmt::format("the device does not start: {}", rte_strerror(-code)));
    // Neighbour discovery arrives by multicast. A device without the operation passes all.
    rte_eth_allmulticast_enable(*device);
    set_mac(wanted.mac, port);
    if (port.tx_queues < workers_)
        spdlog::info("port {}: {} transmit queue(s) for {} workers, shared under a lock", port.name,
                     port.tx_queues, workers_);
    tx_locks_.push_back(std::make_unique<TxLock[]>(port.tx_queues));
    ports_.push_back(std::move(port));
    return {};
}

Result<std::unique_ptr<Ports>> Ports::open(const config::Config& config) {
    auto ports = std::unique_ptr<Ports>(new Ports);
    ports->workers_ = static_cast<unsigned>(config.workers.size());
    ports->worker_pool_.resize(ports->workers_);
    if (auto pools = ports->create_pools(config); !pools) return pools.error();
    for (std::size_t i = 0; i < config.ports.size(); ++i)
        if (auto started = ports->start(config, i); !started) return started.error();
    return ports;
}

Ports::~Ports() {
    for (const auto& port : ports_) {
        rte_eth_dev_stop(port.device);
        rte_eth_dev_close(port.device);
    }
    for (auto* pool : pools_) rte_mempool_free(pool);
}

WorkerPorts Ports::for_worker(unsigned worker) const {
    WorkerPorts result;
    result.pool = worker_pool_[worker];
    for (std::size_t i = 0; i < ports_.size(); ++i) {
        const auto& port = ports_[i];
        if (worker < port.rx_queues)
            result.receive.push_back(
                {port.device, static_cast<std::uint16_t>(worker), port.id, port.role});
        const auto queue = static_cast<std::uint16_t>(worker % port.tx_queues);
        // Worker w shares queue w % n; it is alone there unless another one wraps onto it.
        const bool alone = worker + port.tx_queues >= workers_ && worker < port.tx_queues;
        result.transmit.push_back({port.device, queue, alone ? nullptr : &tx_locks_[i][queue]});
    }
    return result;
}

Link Ports::link(PortId id) const {
    rte_eth_link link{};
    if (rte_eth_link_get_nowait((*this)[id].device, &link) != 0) return {};
    return {link.link_status == RTE_ETH_LINK_UP,
            link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed};
}

Counters Ports::counters(PortId id) const {
    rte_eth_stats stats{};
    if (rte_eth_stats_get((*this)[id].device, &stats) != 0) return {};
    return {stats.ipackets, stats.opackets, stats.ibytes,    stats.obytes,
            stats.imissed,  stats.ierrors,  stats.rx_nombuf, stats.oerrors};
}

}  // namespace sluice::port
