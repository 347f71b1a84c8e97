// SPDX-License-Identifier: Apache-2.0
// The untyped core of PersistentMap (persistent_map.hpp): a hash array mapped trie over
// boxes that know their hash. See there for threads, cost and ownership.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace sluice::policy {

// What stands before every record. The count is the writer's alone.
struct TrieBox {
    std::uint32_t count;
    std::uint64_t hash;
};

// Followed by one pointer a bit of `records`, then one a bit of `children`. Below the last
// level of the hash `records` is a number of records, all of the same hash.
struct TrieNode {
    std::uint32_t count;
    std::uint32_t records;
    std::uint32_t children;
    std::uint32_t padding;

    TrieBox** boxes() { return reinterpret_cast<TrieBox**>(this + 1); }
    [[nodiscard]] TrieBox* const* boxes() const {
        return reinterpret_cast<TrieBox* const*>(this + 1);
    }
    TrieNode** kids(unsigned record_count) {
        return reinterpret_cast<TrieNode**>(boxes() + record_count);
    }
    [[nodiscard]] TrieNode* const* kids(unsigned record_count) const {
        return reinterpret_cast<TrieNode* const*>(boxes() + record_count);
    }
};
static_assert(sizeof(TrieNode) == 16);

class Trie {
  public:
    static constexpr unsigned kBits = 5;
    static constexpr unsigned kLastShift = 60;  // of 64 bits of hash

    // What the trie must know of its records.
    struct Operations {
        bool (*has_key)(const TrieBox& box, const void* key);
        const void* (*key)(const TrieBox& box);
        void (*destroy)(TrieBox* box);
    };

    explicit Trie(const Operations& operations) : operations_(&operations) {}
    Trie(const Trie& other)
        : operations_(other.operations_), root_(other.root_), size_(other.size_) {
        if (root_ != nullptr) ++root_->count;
    }
    Trie(Trie&& other) noexcept
        : operations_(other.operations_),
          root_(std::exchange(other.root_, nullptr)),
          size_(std::exchange(other.size_, 0)) {}
    Trie& operator=(Trie other) noexcept {
        std::swap(operations_, other.operations_);
        std::swap(root_, other.root_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Trie() { release(root_, 0); }

    [[nodiscard]] const TrieNode* root() const { return root_; }
    [[nodiscard]] std::size_t size() const { return size_; }

    // Takes the caller's count of the box.
    void put(TrieBox* box);
    // The key must be there.
    void remove(std::uint64_t hash, const void* key);

    static std::uint32_t bit_of(std::uint64_t hash, unsigned shift) {
        return 1U << (hash >> shift & 31);
    }
    // How many of `bits` are below `bit`.
    static unsigned rank(std::uint32_t bits, std::uint32_t bit) {
        return static_cast<unsigned>(std::popcount(bits & (bit - 1)));
    }
    static unsigned record_count(const TrieNode& node, unsigned shift) {
        return shift > kLastShift ? node.records
                                  : static_cast<unsigned>(std::popcount(node.records));
    }
    // Whether `hash` comes before `other` in the order of visits, from the digit at `shift` on.
    static bool before(std::uint64_t hash, std::uint64_t other, unsigned shift) {
        for (; shift <= kLastShift; shift += kBits)
            if ((hash >> shift & 31) != (other >> shift & 31))
                return (hash >> shift & 31) < (other >> shift & 31);
        return false;
    }

  private:
    void release(TrieNode* node, unsigned shift);
    void release(TrieBox* box);
    void own(TrieNode*& slot, unsigned shift);
    void put_into(TrieNode*& slot, unsigned shift, TrieBox* box);
    void put_among_collided(TrieNode*& slot, TrieBox* box);
    void remove_from(TrieNode*& slot, unsigned shift, std::uint64_t hash, const void* key);
    void pull_up(TrieNode*& slot, unsigned shift, std::uint32_t bit);

    const Operations* operations_;
    TrieNode* root_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace sluice::policy
