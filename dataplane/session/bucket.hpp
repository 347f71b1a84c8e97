// SPDX-License-Identifier: Apache-2.0
// One line of the session table: eight tags and the eight flows they stand for.
//
// Readers: any number, lock-free. They compare all tags at once; a tag that matches leads to
// a flow whose key decides. Writers hold the bucket's lock; a slot is filled index first, tag
// second (release), so whoever sees the tag sees the index or a later one, and never a flow
// that was not written.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "dataplane/session/flow.hpp"
#include "dataplane/session/spin_lock.hpp"

#if defined(__SANITIZE_THREAD__)
#define SLUICE_SCALAR_TAGS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLUICE_SCALAR_TAGS 1
#endif
#endif
#if !defined(SLUICE_SCALAR_TAGS)
#include <emmintrin.h>
#endif

namespace sluice::session {

struct alignas(64) Bucket {
    static constexpr unsigned kSlots = 8;

    std::array<std::atomic<std::uint16_t>, kSlots> tags{};  // 0: empty
    std::array<std::atomic<std::uint32_t>, kSlots> flows{};
    SpinLock lock;

    // A bit for each slot with this tag.
    [[nodiscard]] unsigned matching(std::uint16_t tag) const {
#if defined(SLUICE_SCALAR_TAGS)
        // ThreadSanitizer does not see vector loads as the atomics they are.
        unsigned result = 0;
        for (unsigned i = 0; i < kSlots; ++i)
            result |= unsigned{tags[i].load(std::memory_order_acquire) == tag} << i;
        return result;
#else
        // An aligned 16-octet load of x86 reads each tag whole and acquires.
        const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(tags.data()));
        const __m128i equal = _mm_cmpeq_epi16(all, _mm_set1_epi16(static_cast<short>(tag)));
        return static_cast<unsigned>(
            _mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128())));
#endif
    }
    [[nodiscard]] FlowIndex flow(unsigned slot) const {
        return FlowIndex{flows[slot].load(std::memory_order_acquire)};
    }

    // The rest under the lock.
    [[nodiscard]] unsigned used() const {
        return kSlots - static_cast<unsigned>(__builtin_popcount(matching(0)));
    }
    void put(unsigned slot, std::uint16_t tag, FlowIndex flow) {
        flows[slot].store(flow.value, std::memory_order_release);
        tags[slot].store(tag, std::memory_order_release);
    }
    void clear(unsigned slot) {
        tags[slot].store(0, std::memory_order_release);
    }
};
static_assert(sizeof(Bucket) == 64);

}  // namespace sluice::session
