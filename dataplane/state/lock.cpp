// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "dataplane/state/state.hpp"

namespace sluice::state {
namespace {

constexpr std::chrono::milliseconds kPatience{1000};

std::string process_in(int handle) {
    char text[16] = {};
    const auto size = pread(handle, text, sizeof(text) - 1, 0);
    return size > 1 ? std::string(text, static_cast<std::size_t>(size - 1)) : "unknown";
}

}  // namespace

Result<Lock> Lock::take(const std::filesystem::path& folder, const std::string& name) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
        return Error{Error::Code::unavailable,
                     fmt::format("the folder {} cannot be made: {}; make it or choose another",
                                 folder.string(), error.message()),
                     "state_dir"};
    const auto file = folder / "lock";
    const int handle = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (handle < 0)
        return Error{Error::Code::unavailable,
                     fmt::format("{} cannot be written: {}; make the folder or choose another",
                                 file.string(), std::system_category().message(errno)),
                     "state_dir"};
    Lock lock(handle);
    // The kernel lets go of it when its holder dies, however it dies; of one that was just
    // killed, when its memory is freed.
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    bool held = flock(handle, LOCK_EX | LOCK_NB) == 0;
    while (!held && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        held = flock(handle, LOCK_EX | LOCK_NB) == 0;
    }
    if (held) {
        const auto text = fmt::format("{}\n", getpid());
        if (ftruncate(handle, 0) != 0 || pwrite(handle, text.data(), text.size(), 0) < 0)
            return Error{Error::Code::unavailable,
                         fmt::format("{} cannot be written: {}; free some space", file.string(),
                                     std::system_category().message(errno)),
                         "state_dir"};
        return lock;
    }
    return Error{
        Error::Code::conflict,
        fmt::format("another gateway \"{}\" runs on {} (process {}); stop it, or give this "
                    "one a name and a state_dir of its own",
                    name, folder.string(), process_in(handle)),
        "state_dir"};
}

std::optional<std::string> Lock::holder(const std::filesystem::path& folder) {
    const int handle = open((folder / "lock").c_str(), O_RDONLY | O_CLOEXEC);
    if (handle < 0) return std::nullopt;
    // Shared, and let go of at once: it takes nothing from a gateway that starts meanwhile, which
    // has patience.
    const bool held = flock(handle, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    std::optional<std::string> result;
    if (held) result = process_in(handle);
    close(handle);
    return result;
}

Lock::~Lock() {
    if (handle_ >= 0) close(handle_);
}

Lock::Lock(Lock&& other) noexcept : handle_(std::exchange(other.handle_, -1)) {}

}  // namespace sluice::state
