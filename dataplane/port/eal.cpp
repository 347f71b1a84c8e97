// SPDX-License-Identifier: Apache-2.0
#include "dataplane/port/eal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <rte_devargs.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

namespace sluice::port {
namespace {

// DPDK's log lines go to the gateway's log; the first is kept, because DPDK's functions return
// codes and say the cause only there, before what failed because of it.
std::string& complaint() {
    static std::string text;
    return text;
}

ssize_t take_log_line(void*, const char* text, std::size_t size) {
    std::string_view line(text, size);
    while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.remove_suffix(1);
    if (!line.empty()) {
        if (complaint().empty()) complaint() = line;
        spdlog::debug("dpdk: {}", line);
    }
    return static_cast<ssize_t>(size);
}

void redirect_log() {
    cookie_io_functions_t functions{};
    functions.write = take_log_line;
    static FILE* const stream = fopencookie(nullptr, "w", functions);
    if (stream == nullptr) return;
    setvbuf(stream, nullptr, _IOLBF, 0);
    rte_openlog_stream(stream);
    rte_log_set_global_level(RTE_LOG_WARNING);
}

// Control thread: lcore 0, on every core that has no worker. Worker i: lcore i + 1.
std::string cores(const config::Config& config) {
    std::vector<unsigned> others;
    const auto online = static_cast<unsigned>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
    for (unsigned core = 0; core < online; ++core)
        if (std::find(config.workers.begin(), config.workers.end(), core) == config.workers.end())
            others.push_back(core);
    if (others.empty()) others = config.workers;
    std::string result = "0@(";
    for (const unsigned core : others)
        result += (core == others.front() ? "" : ",") + std::to_string(core);
    result += ')';
    for (std::size_t i = 0; i < config.workers.size(); ++i)
        result += fmt::format(",{}@{}", i + 1, config.workers[i]);
    return result;
}

// DPDK prints its whole usage and a line of its own when it cannot start; the gateway says in
// one sentence why. For its lifetime, nothing is written to standard output and error.
class Silence {
  public:
    Silence() : out_(dup(STDOUT_FILENO)), error_(dup(STDERR_FILENO)) {
        const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (nowhere < 0) return;
        std::fflush(stdout);
        dup2(nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
        close(nowhere);
    }
    ~Silence() {
        std::fflush(stdout);
        for (const auto& [kept, original] :
             {std::pair{out_, STDOUT_FILENO}, {error_, STDERR_FILENO}})
            if (kept >= 0) {
                dup2(kept, original);
                close(kept);
            }
    }
    Silence(const Silence&) = delete;
    Silence& operator=(const Silence&) = delete;

  private:
    int out_, error_;
};

int initialise(std::vector<std::string>& words) {
    std::vector<char*> arguments;
    arguments.reserve(words.size());
    for (auto& word : words) arguments.push_back(word.data());
    const Silence silence;
    return rte_eal_init(static_cast<int>(arguments.size()), arguments.data());
}

int run_work(void* work) {
    (*static_cast<std::function<void()>*>(work))();
    return 0;
}

std::uint64_t read_number(const std::filesystem::path& file) {
    std::uint64_t number = 0;
    std::ifstream(file) >> number;
    return number;
}

}  // namespace

std::uint16_t buffer_octets(const config::Config& config) {
    std::uint32_t mtu = 0;
    for (const auto& port : config.ports) mtu = std::max<std::uint32_t>(mtu, port.mtu);
    // Ethernet with a VLAN tag and FCS, and what a ring of the kernel puts before a frame.
    const std::uint32_t frame = mtu + 22 + 80;
    return static_cast<std::uint16_t>(std::max(2048U, (frame + 1023) / 1024 * 1024));
}

std::uint32_t memory_megabytes(const config::Config& config) {
    const std::uint64_t buffer = buffer_octets(config) + RTE_PKTMBUF_HEADROOM + sizeof(rte_mbuf) +
                                 64;  // a mempool object's header
    const std::uint64_t octets = buffer * config.memory.packet_buffers;
    return static_cast<std::uint32_t>(octets / (1 << 20) + 48 + 16 * config.ports.size());
}

std::uint64_t free_hugepage_megabytes() {
    std::uint64_t result = 0;
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator("/sys/kernel/mm/hugepages", error)) {
        unsigned long kilobytes = 0;
        if (std::sscanf(entry.path().filename().c_str(), "hugepages-%lukB", &kilobytes) == 1)
            result += read_number(entry.path() / "free_hugepages") * kilobytes / 1024;
    }
    return result;
}

std::string first_complaint() {
    return complaint();
}
void forget_complaints() {
    complaint().clear();
}

Result<std::vector<std::size_t>> unknown_devices(const config::Config& config) {
    redirect_log();
    std::vector<std::string> words = {
        "sluiced",  "--no-telemetry", "--no-shconf",          "--no-huge", "-m", "16",
        "--no-pci", "--lcores",       cores(config::Config{})};
    forget_complaints();
    if (initialise(words) < 0)
        return Error{
            Error::Code::unavailable,
            fmt::format("DPDK cannot start: {} ({})", rte_strerror(rte_errno), first_complaint()),
            "memory"};
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < config.ports.size(); ++i) {
        const auto& port = config.ports[i];
        if (port.is_pci() || port.device.empty()) continue;
        rte_devargs arguments{};
        // A bus takes the name, or none does: DPDK's drivers of virtual devices are a bus.
        if (rte_devargs_parse(&arguments, port.device.c_str()) != 0) result.push_back(i);
        std::free(arguments.data);  // rte_devargs_reset, of the stable interface
    }
    rte_eal_cleanup();
    return result;
}

Result<std::unique_ptr<Eal>> Eal::start(const config::Config& config) {
    redirect_log();
    auto eal = std::unique_ptr<Eal>(new Eal);
    const auto megabytes = memory_megabytes(config);
    eal->hugepages_ =
        config.memory.hugepages != config::Hugepages::off && free_hugepage_megabytes() >= megabytes;
    if (config.memory.hugepages == config::Hugepages::required && !eal->hugepages_)
        return Error{Error::Code::unavailable,
                     fmt::format("{} MB of free hugepages are required and {} MB are there; "
                                 "reserve them (vm.nr_hugepages) or set hugepages = \"auto\"",
                                 megabytes, free_hugepage_megabytes()),
                     "memory.hugepages"};

    std::vector<std::string> words = {"sluiced", "--no-telemetry", "--log-level=5", "--lcores",
                                      cores(config)};
    // --in-memory and --no-huge exclude each other; either leaves no file behind.
    if (eal->hugepages_)
        words.emplace_back("--in-memory");
    else
        words.insert(words.end(), {"--no-shconf", "--no-huge", "-m", std::to_string(megabytes)});
    bool pci = false;
    for (const auto& port : config.ports)
        if (port.is_pci()) {
            words.insert(words.end(), {"--allow", port.device});
            pci = true;
        }
    if (!pci) words.emplace_back("--no-pci");
    forget_complaints();
    if (initialise(words) < 0)
        return Error{
            Error::Code::unavailable,
            fmt::format("DPDK cannot start: {} ({})", rte_strerror(rte_errno), first_complaint()),
            "memory"};
    eal->work_.resize(config.workers.size());
    return eal;
}

Eal::~Eal() {
    rte_eal_cleanup();
}

void Eal::launch(unsigned worker, std::function<void()> work) {
    work_[worker] = std::move(work);
    rte_eal_remote_launch(run_work, &work_[worker], worker + 1);
}

void Eal::join() {
    for (unsigned worker = 0; worker < work_.size(); ++worker) rte_eal_wait_lcore(worker + 1);
}

}  // namespace sluice::port
