// SPDX-License-Identifier: Apache-2.0
// Where the session tables live: large, zeroed, and best on huge pages, since a look-up of
// random keys costs a TLB miss per line otherwise. The gateway hands in how to get it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <span>

namespace sluice::session {

// Returns `octets` of zeroed memory aligned to at least 128, or an empty pointer. The
// pointer's deleter gives it back.
using Memory = std::shared_ptr<void>;
using Allocate = std::function<Memory(std::size_t octets)>;

// Anonymous memory with transparent huge pages asked for; pages are taken when first touched.
Memory map_memory(std::size_t octets);

// An array in such memory. All-zero octets must be a valid T; nothing is destroyed.
template <class T>
class Array {
  public:
    Array() = default;
    Array(const Allocate& allocate, std::size_t count)
        : memory_(allocate(count * sizeof(T))),
          items_(static_cast<T*>(memory_.get())),
          count_(items_ == nullptr ? 0 : count) {}
    [[nodiscard]] bool ok() const { return items_ != nullptr; }
    [[nodiscard]] std::size_t size() const { return count_; }
    T& operator[](std::size_t i) { return items_[i]; }
    const T& operator[](std::size_t i) const { return items_[i]; }

  private:
    Memory memory_;
    T* items_ = nullptr;
    std::size_t count_ = 0;
};

}  // namespace sluice::session
