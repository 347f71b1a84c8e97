// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/memory.hpp"

#include <sys/mman.h>

#include <cstdint>

namespace sluice::session {

Memory map_memory(std::size_t octets) {
    constexpr std::size_t kHugePage = std::size_t{2} << 20;
    // One huge page more, so that the array can start on a huge page's border.
    const std::size_t mapped = octets + kHugePage;
    void* start = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return nullptr;
    const std::size_t past = reinterpret_cast<std::uintptr_t>(start) % kHugePage;
    void* aligned = static_cast<char*>(start) + (past == 0 ? 0 : kHugePage - past);
    // Advice only: without huge pages it is slower, not wrong.
    madvise(aligned, octets, MADV_HUGEPAGE);
    return {aligned, [start, mapped](void*) { munmap(start, mapped); }};
}

}  // namespace sluice::session
