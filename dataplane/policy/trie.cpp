// SPDX-License-Identifier: Apache-2.0
#include "dataplane/policy/trie.hpp"

#include <cstring>
#include <new>

namespace sluice::policy {
namespace {

TrieNode* allocate(std::uint32_t records, std::uint32_t children, unsigned pointers) {
    void* memory = ::operator new(sizeof(TrieNode) + pointers * sizeof(void*));
    return new (memory) TrieNode{1, records, children, 0};
}

void copy_pointers(void* to, const void* from, unsigned count) {
    if (count != 0) std::memcpy(to, from, count * sizeof(void*));
}

// A node like `node` with the pointer at `index` left out or added, counts moved over.
// All pointers are the same size, so records and children are one array here.
TrieNode* without_pointer(TrieNode* node, unsigned pointers, unsigned index) {
    TrieNode* result = allocate(node->records, node->children, pointers - 1);
    copy_pointers(result->boxes(), node->boxes(), index);
    copy_pointers(result->boxes() + index, node->boxes() + index + 1, pointers - index - 1);
    ::operator delete(node);
    return result;
}

TrieNode* with_pointer(TrieNode* node, unsigned pointers, unsigned index, void* pointer) {
    TrieNode* result = allocate(node->records, node->children, pointers + 1);
    copy_pointers(result->boxes(), node->boxes(), index);
    std::memcpy(result->boxes() + index, &pointer, sizeof pointer);
    copy_pointers(result->boxes() + index + 1, node->boxes() + index, pointers - index);
    ::operator delete(node);
    return result;
}

unsigned kid_count(const TrieNode& node) {
    return static_cast<unsigned>(std::popcount(node.children));
}

}  // namespace

void Trie::release(TrieBox* box) {
    if (--box->count == 0) operations_->destroy(box);
}

void Trie::release(TrieNode* node, unsigned shift) {
    if (node == nullptr || --node->count > 0) return;
    const unsigned records = record_count(*node, shift);
    for (unsigned i = 0; i < records; ++i) release(node->boxes()[i]);
    for (unsigned i = 0; i < kid_count(*node); ++i) release(node->kids(records)[i], shift + kBits);
    ::operator delete(node);
}

// Makes the node in `slot` one that nobody else has. The slot's own node must be owned.
void Trie::own(TrieNode*& slot, unsigned shift) {
    if (slot->count == 1) return;
    const unsigned records = record_count(*slot, shift);
    const unsigned kids = kid_count(*slot);
    TrieNode* copy = allocate(slot->records, slot->children, records + kids);
    copy_pointers(copy->boxes(), slot->boxes(), records + kids);
    // NOLINTBEGIN(clang-analyzer-core.NullDereference): copy_pointers has just filled them.
    for (unsigned i = 0; i < records; ++i) ++copy->boxes()[i]->count;
    for (unsigned i = 0; i < kids; ++i) ++copy->kids(records)[i]->count;
    // NOLINTEND(clang-analyzer-core.NullDereference)
    --slot->count;
    slot = copy;
}

void Trie::put(TrieBox* box) {
    put_into(root_, 0, box);
}

void Trie::put_among_collided(TrieNode*& slot, TrieBox* box) {
    const void* key = operations_->key(*box);
    for (unsigned i = 0; i < slot->records; ++i)
        if (operations_->has_key(*slot->boxes()[i], key)) {
            release(std::exchange(slot->boxes()[i], box));
            return;
        }
    slot = with_pointer(slot, slot->records, slot->records, box);
    ++slot->records;
    ++size_;
}

void Trie::put_into(TrieNode*& slot, unsigned shift, TrieBox* box) {
    if (slot == nullptr) {
        slot = allocate(shift > kLastShift ? 1 : bit_of(box->hash, shift), 0, 1);
        slot->boxes()[0] = box;
        ++size_;
        return;
    }
    own(slot, shift);
    if (shift > kLastShift) return put_among_collided(slot, box);

    const std::uint32_t bit = bit_of(box->hash, shift);
    const unsigned records = record_count(*slot, shift);
    const unsigned kids = kid_count(*slot);
    if ((slot->children & bit) != 0)
        return put_into(slot->kids(records)[rank(slot->children, bit)], shift + kBits, box);
    if ((slot->records & bit) == 0) {
        slot = with_pointer(slot, records + kids, rank(slot->records, bit), box);
        slot->records |= bit;
        ++size_;
        return;
    }
    TrieBox*& there = slot->boxes()[rank(slot->records, bit)];
    if (there->hash == box->hash && operations_->has_key(*there, operations_->key(*box))) {
        release(std::exchange(there, box));
        return;
    }
    // Two records of one digit: both move into a child.
    TrieNode* child = nullptr;
    const std::size_t before = size_;
    put_into(child, shift + kBits, there);
    put_into(child, shift + kBits, box);
    size_ = before + 1;
    slot = without_pointer(slot, records + kids, rank(slot->records, bit));
    slot->records &= ~bit;
    slot = with_pointer(slot, records + kids - 1, records - 1 + rank(slot->children, bit), child);
    slot->children |= bit;
}

void Trie::remove(std::uint64_t hash, const void* key) {
    remove_from(root_, 0, hash, key);
    --size_;
}

void Trie::remove_from(TrieNode*& slot, unsigned shift, std::uint64_t hash, const void* key) {
    own(slot, shift);
    const unsigned records = record_count(*slot, shift);
    const unsigned pointers = records + kid_count(*slot);
    const std::uint32_t bit = shift > kLastShift ? 0 : bit_of(hash, shift);
    if ((slot->children & bit) != 0) {
        remove_from(slot->kids(records)[rank(slot->children, bit)], shift + kBits, hash, key);
        return pull_up(slot, shift, bit);
    }
    unsigned index = shift > kLastShift ? 0 : rank(slot->records, bit);
    if (shift > kLastShift)
        while (!operations_->has_key(*slot->boxes()[index], key)) ++index;
    release(slot->boxes()[index]);
    if (pointers == 1) {
        ::operator delete(slot);
        slot = nullptr;
        return;
    }
    slot = without_pointer(slot, pointers, index);
    slot->records = shift > kLastShift ? slot->records - 1 : slot->records & ~bit;
}

// A child that was emptied goes; one that is down to a single record gives it to its parent, so
// that a map's shape depends on its records alone.
void Trie::pull_up(TrieNode*& slot, unsigned shift, std::uint32_t bit) {
    const unsigned records = record_count(*slot, shift);
    const unsigned pointers = records + kid_count(*slot);
    const unsigned index = records + rank(slot->children, bit);
    TrieNode* child = slot->kids(records)[rank(slot->children, bit)];
    const bool gone = child == nullptr;
    if (!gone && (child->children != 0 || record_count(*child, shift + kBits) != 1)) return;
    slot = without_pointer(slot, pointers, index);
    slot->children &= ~bit;
    if (gone) {
        if (pointers == 1) {
            ::operator delete(slot);
            slot = nullptr;
        }
        return;
    }
    // The child is owned: remove_from has just been there.
    slot = with_pointer(slot, pointers - 1, rank(slot->records, bit), child->boxes()[0]);
    slot->records |= bit;
    ::operator delete(child);
}

}  // namespace sluice::policy
