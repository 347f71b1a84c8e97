// SPDX-License-Identifier: Apache-2.0
// The log of port blocks: who had a port of a NAT gateway's address, and when.
//
// Purpose: one line of JSON in STATE_DIR/nat.log when a block of ports is assigned to an endpoint
// and when it is released (RFC 6888 REQ-12: a translator keeps what an inquiry asks for; REQ-13:
// by block, not by connection). Between these lines all of the block's ports are that endpoint's.
// The file is rotated at 64 MiB, nat.1.log being the last one before; 16 of them stay. Whoever
// takes it away or removes it finds the next line in a new one. Threads: the control thread. What a
// worker could not tell, because its ring was full, is counted, and the count is a line of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "dataplane/policy/snapshot.hpp"
#include "dataplane/session/port_table.hpp"
#include "dataplane/wire/result.hpp"

namespace spdlog::sinks {
class sink;
}

namespace sluice::control {

// An event as a line. `now` and `wall` are one moment: nanoseconds of the workers' clock, and
// since 1970.
std::string nat_log_line(const session::BlockEvent& event, const policy::Snapshot& snapshot,
                         std::uint64_t now, std::uint64_t wall);

class NatLog {
  public:
    // Says that all ports of before are free: a restart forgets them.
    static Result<std::unique_ptr<NatLog>> open(const std::filesystem::path& folder);
    NatLog(const NatLog&) = delete;
    NatLog& operator=(const NatLog&) = delete;
    ~NatLog();

    // `now`: of the workers' clock.
    void write(const session::BlockEvent& event, const policy::Snapshot& snapshot,
               std::uint64_t now);
    // So many events were lost since the gateway started.
    void lost(std::uint64_t count);
    [[nodiscard]] const std::uint64_t& lost() const { return lost_; }
    void flush();

  private:
    explicit NatLog(std::filesystem::path path) : path_(std::move(path)) {}
    void open();
    [[nodiscard]] bool is_in_place() const;
    void line(const std::string& text);

    std::filesystem::path path_;
    std::uint64_t inode_ = 0;
    std::shared_ptr<spdlog::sinks::sink> file_;
    std::uint64_t lost_ = 0;
    bool dirty_ = false;
};

}  // namespace sluice::control
