// SPDX-License-Identifier: Apache-2.0
#include "dataplane/control/nat_log.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <sys/stat.h>

#include <chrono>

namespace sluice::control {
namespace {

constexpr std::size_t kFileOctets = std::size_t{64} << 20;
constexpr std::size_t kFiles = 16;
constexpr std::uint64_t kSecond = 1'000'000'000, kMillisecond = 1'000'000;

std::uint64_t wall_now() {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

// RFC 3339, UTC.
std::string time_of(std::uint64_t wall) {
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                       fmt::gmtime(static_cast<std::time_t>(wall / kSecond)),
                       wall % kSecond / kMillisecond);
}

std::string_view name_of(session::PortSpace space) {
    switch (space) {
        case session::PortSpace::tcp:
            return "tcp";
        case session::PortSpace::udp:
            return "udp";
        case session::PortSpace::icmp:
            return "icmp";
    }
    return "";
}

// 0: there is none.
std::uint64_t inode_of(const std::filesystem::path& path) {
    struct stat found {};
    return ::stat(path.c_str(), &found) == 0 ? std::uint64_t{found.st_ino} : 0;
}

}  // namespace

std::string nat_log_line(const session::BlockEvent& event, const policy::Snapshot& snapshot,
                         std::uint64_t now, std::uint64_t wall) {
    const std::uint64_t ago = now > event.time ? now - event.time : 0;
    std::string endpoint;
    // Of one that is gone the line of the assignment says where it was.
    if (const auto* there = snapshot.core.endpoint(event.owner.endpoint, Family::ipv4))
        endpoint =
            fmt::format(R"(,"vpc":{},"private_address":"{}","endpoint_cookie":{})",
                        there->key.vpc.value, to_string(there->key.address), there->cookie.value);
    return fmt::format(
        R"({{"time":"{}","event":"{}","nat_gateway":{},"endpoint":{}{},"public_address":"{}",)"
        R"("protocol":"{}","first_port":{},"last_port":{}}})",
        time_of(wall - ago), event.assigned ? "assigned" : "released", event.owner.gateway.value,
        event.owner.endpoint.value, endpoint, to_string(IpAddress::v4(event.address)),
        name_of(event.space), event.first_port, event.first_port + session::kBlockPorts - 1);
}

// Throws spdlog_ex.
void NatLog::open() {
    file_ =
        std::make_shared<spdlog::sinks::rotating_file_sink_st>(path_.string(), kFileOctets, kFiles);
    file_->set_formatter(std::make_unique<spdlog::pattern_formatter>("%v"));
    inode_ = inode_of(path_);
}

Result<std::unique_ptr<NatLog>> NatLog::open(const std::filesystem::path& folder) {
    auto log = std::unique_ptr<NatLog>(new NatLog(folder / "nat.log"));
    try {
        log->open();
    } catch (const spdlog::spdlog_ex& error) {
        return Error{Error::Code::unavailable, error.what(), "state_dir"};
    }
    log->line(fmt::format(R"({{"time":"{}","event":"started"}})", time_of(wall_now())));
    log->flush();
    return log;
}

NatLog::~NatLog() = default;

// Not moved away, nor removed. A rotation of its own makes a new file, too: then it is opened
// again, which changes nothing.
bool NatLog::is_in_place() const {
    const std::uint64_t there = inode_of(path_);
    return there != 0 && there == inode_;
}

void NatLog::line(const std::string& text) {
    try {
        if (!is_in_place()) open();
        file_->log(spdlog::details::log_msg("nat", spdlog::level::info, text));
        dirty_ = true;
    } catch (const spdlog::spdlog_ex&) {
        ++lost_;  // the disk is full, perhaps
    }
}

void NatLog::write(const session::BlockEvent& event, const policy::Snapshot& snapshot,
                   std::uint64_t now) {
    line(nat_log_line(event, snapshot, now, wall_now()));
}

void NatLog::lost(std::uint64_t count) {
    lost_ += count;
    line(fmt::format(R"({{"time":"{}","event":"lost","count":{}}})", time_of(wall_now()), count));
}

void NatLog::flush() {
    if (!dirty_) return;
    dirty_ = false;
    try {
        file_->flush();
    } catch (const spdlog::spdlog_ex&) {
        ++lost_;
    }
}

}  // namespace sluice::control
