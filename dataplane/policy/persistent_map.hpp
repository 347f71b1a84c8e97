// SPDX-License-Identifier: Apache-2.0
// An immutable hash map whose copies share all they have in common: a copy costs nothing,
// a change costs the path to it (a hash array mapped trie of 32 children a node).
//
// Use: copy the map of the current snapshot, `put` and `remove` on the copy, publish the
// snapshot that holds it. A node that only the copy owns is changed in place, so a large
// batch of changes copies each node once.
// Ownership and threads: nodes and records carry counts, which are plain integers: the one
// writer alone copies, changes and destroys maps. A reader uses `find` and `visit` on a map
// that the writer keeps alive for it (reclaim/qsbr.hpp) and never touches a count.
// Cost: find: a node for each factor 32 of the size, one line more for the record.
// Order of visits: by the digits of the hash, the same in every map of the same records.
//
// Traits: `using Key`, `static const Key& key(const Record&)`, `static std::uint64_t
// hash(const Key&)`; keys compare with ==.
#pragma once

#include "dataplane/policy/trie.hpp"

namespace sluice::policy {

template <class Record, class Traits = typename Record::Traits>
class PersistentMap {
  public:
    using Key = typename Traits::Key;

    PersistentMap() : trie_(kOperations) {}

    [[nodiscard]] std::size_t size() const { return trie_.size(); }

    // The record of this key, or nullptr. Holds for as long as any map has it.
    [[nodiscard]] const Record* find(const Key& key) const {
        const std::uint64_t hash = Traits::hash(key);
        const TrieNode* node = trie_.root();
        unsigned shift = 0;
        for (; node != nullptr && shift <= Trie::kLastShift; shift += Trie::kBits) {
            const std::uint32_t bit = Trie::bit_of(hash, shift);
            if ((node->records & bit) != 0) {
                const TrieBox* box = node->boxes()[Trie::rank(node->records, bit)];
                return box->hash == hash && has_key(*box, &key) ? &record(*box) : nullptr;
            }
            if ((node->children & bit) == 0) return nullptr;
            node = node->kids(Trie::record_count(*node, 0))[Trie::rank(node->children, bit)];
        }
        for (unsigned i = 0; node != nullptr && i < node->records; ++i)
            if (has_key(*node->boxes()[i], &key)) return &record(*node->boxes()[i]);
        return nullptr;
    }

    // Adds the record, or replaces the one of the same key.
    void put(Record value) {
        const std::uint64_t hash = Traits::hash(Traits::key(value));
        trie_.put(new Box{{1, hash}, std::move(value)});
    }

    // True if there was one.
    bool remove(const Key& key) {
        if (find(key) == nullptr) return false;
        trie_.remove(Traits::hash(key), &key);
        return true;
    }

    // Calls `visit(record)` for each until it returns false; true if it never did.
    template <class Visit>
    bool visit(Visit&& visit) const {
        return visit_node(trie_.root(), 0, nullptr, visit);
    }
    // The same from the first record behind the place of `after`, which need not be there.
    template <class Visit>
    bool visit_after(const Key& after, Visit&& visit) const {
        const Cursor cursor{Traits::hash(after), &after};
        return visit_node(trie_.root(), 0, &cursor, visit);
    }

  private:
    struct Box : TrieBox {
        Record record;
        Box(TrieBox header, Record&& value) : TrieBox(header), record(std::move(value)) {}
    };
    struct Cursor {
        std::uint64_t hash;
        const Key* key;
    };

    static const Record& record(const TrieBox& box) { return static_cast<const Box&>(box).record; }
    static bool has_key(const TrieBox& box, const void* key) {
        return Traits::key(record(box)) == *static_cast<const Key*>(key);
    }
    static const void* key_of(const TrieBox& box) { return &Traits::key(record(box)); }
    static void destroy(TrieBox* box) { delete static_cast<Box*>(box); }
    static constexpr Trie::Operations kOperations = {&has_key, &key_of, &destroy};

    template <class Visit>
    static bool visit_node(const TrieNode* node, unsigned shift, const Cursor* cursor,
                           Visit& visit) {
        if (node == nullptr) return true;
        if (shift > Trie::kLastShift) return visit_collided(*node, cursor, visit);
        const unsigned records = Trie::record_count(*node, shift);
        for (std::uint32_t rest = node->records | node->children; rest != 0; rest &= rest - 1) {
            const std::uint32_t bit = rest & ~(rest - 1);
            const std::uint32_t at = cursor != nullptr ? Trie::bit_of(cursor->hash, shift) : 0;
            if (bit < at) continue;
            if ((node->children & bit) != 0) {
                const TrieNode* child = node->kids(records)[Trie::rank(node->children, bit)];
                const Cursor* inside = bit == at ? cursor : nullptr;
                if (!visit_node(child, shift + Trie::kBits, inside, visit)) return false;
                continue;
            }
            const TrieBox* box = node->boxes()[Trie::rank(node->records, bit)];
            if (cursor != nullptr && bit == at && !Trie::before(cursor->hash, box->hash, shift))
                continue;
            if (!visit(record(*box))) return false;
        }
        return true;
    }
    template <class Visit>
    static bool visit_collided(const TrieNode& node, const Cursor* cursor, Visit& visit) {
        unsigned first = 0;
        for (unsigned i = 0; cursor != nullptr && i < node.records; ++i)
            if (has_key(*node.boxes()[i], cursor->key)) first = i + 1;
        for (unsigned i = first; i < node.records; ++i)
            if (!visit(record(*node.boxes()[i]))) return false;
        return true;
    }

    Trie trie_;
};

}  // namespace sluice::policy
