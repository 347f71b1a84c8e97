// SPDX-License-Identifier: Apache-2.0
#include "dataplane/policy/persistent_map.hpp"

#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sluice::policy {
namespace {

struct Item {
    std::uint32_t key = 0;
    std::string value;
};

// Keeps `Bits` of a good hash, so that few bits give deep paths and collisions.
template <unsigned Bits>
struct ItemTraits {
    using Key = std::uint32_t;
    static const Key& key(const Item& item) { return item.key; }
    static std::uint64_t hash(const Key& key) {
        std::uint64_t x = (key + 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;
        x ^= x >> 29;
        return Bits == 64 ? x : x << (64 - Bits);  // the high digits differ: deep paths
    }
};

struct Step {
    bool put;
    std::uint32_t key;
    std::string value;
};

template <class Map>
std::map<std::uint32_t, std::string> contents(const Map& map) {
    std::map<std::uint32_t, std::string> result;
    map.visit([&](const Item& item) {
        RC_ASSERT(result.emplace(item.key, item.value).second);
        return true;
    });
    RC_ASSERT(result.size() == map.size());
    return result;
}

template <unsigned Bits>
void behaves_like_std_map(const char* name) {
    using Map = PersistentMap<Item, ItemTraits<Bits>>;
    rc::prop(name, [] {
        const auto keys = *rc::gen::inRange(1, 200);
        const auto count = *rc::gen::inRange(0, 400);
        Map map;
        std::map<std::uint32_t, std::string> model;
        std::vector<std::pair<Map, std::map<std::uint32_t, std::string>>> versions;
        for (int i = 0; i < count; ++i) {
            const auto key = static_cast<std::uint32_t>(*rc::gen::inRange(0, keys));
            if (*rc::gen::inRange(0, 3) > 0) {
                const std::string value = std::to_string(i);
                map.put(Item{key, value});
                model[key] = value;
            } else {
                RC_ASSERT(map.remove(key) == (model.erase(key) == 1));
            }
            if (i % 50 == 0) versions.emplace_back(map, model);
        }
        versions.emplace_back(map, model);
        for (const auto& [version, expected] : versions) {
            RC_ASSERT(contents(version) == expected);
            for (std::uint32_t key = 0; key < static_cast<std::uint32_t>(keys); ++key) {
                const Item* found = version.find(key);
                const auto wanted = expected.find(key);
                RC_ASSERT((found != nullptr) == (wanted != expected.end()));
                if (found != nullptr) RC_ASSERT(found->value == wanted->second);
            }
        }
    });
}

TEST_CASE("each version of a map keeps what it held, whatever its copies do") {
    behaves_like_std_map<64>("with a good hash");
    behaves_like_std_map<6>("with 64 different hashes on the last levels");
    behaves_like_std_map<1>("with two different hashes");
}

TEST_CASE("a visit can be resumed behind any record, even one that is gone") {
    rc::prop("in pieces as in one", [] {
        using Map = PersistentMap<Item, ItemTraits<64>>;
        Map map;
        const auto count = *rc::gen::inRange<std::uint32_t>(0, 300);
        for (std::uint32_t key = 0; key < count; ++key) map.put(Item{key, ""});
        std::vector<std::uint32_t> whole;
        map.visit([&](const Item& item) {
            whole.push_back(item.key);
            return true;
        });
        RC_ASSERT(whole.size() == count);
        for (std::size_t i = 0; i < whole.size(); ++i) {
            Map without = map;
            if (*rc::gen::arbitrary<bool>()) without.remove(whole[i]);
            std::vector<std::uint32_t> rest;
            without.visit_after(whole[i], [&](const Item& item) {
                rest.push_back(item.key);
                return rest.size() < 3;
            });
            const auto end =
                whole.begin() + static_cast<std::ptrdiff_t>(std::min(whole.size(), i + 4));
            RC_ASSERT(rest == std::vector<std::uint32_t>(
                                  whole.begin() + static_cast<std::ptrdiff_t>(i) + 1, end));
        }
    });
}

TEST_CASE("the order of a visit depends on the records alone, not on how they came") {
    rc::prop("shuffled", [](const std::set<std::uint32_t>& keys) {
        using Map = PersistentMap<Item, ItemTraits<64>>;
        Map up, down;
        for (auto i = keys.begin(); i != keys.end(); ++i) up.put(Item{*i, ""});
        for (auto i = keys.rbegin(); i != keys.rend(); ++i) down.put(Item{*i, ""});
        for (std::uint32_t key = 0; key < 100; ++key) {  // comes and goes
            if (keys.contains(key)) continue;
            down.put(Item{key, ""});
            down.remove(key);
        }
        std::vector<std::uint32_t> one, two;
        up.visit([&](const Item& item) { return one.push_back(item.key), true; });
        down.visit([&](const Item& item) { return two.push_back(item.key), true; });
        RC_ASSERT(one == two);
    });
}

TEST_CASE("a copy that is not changed shares every record") {
    PersistentMap<Item, ItemTraits<64>> map;
    for (std::uint32_t key = 0; key < 1000; ++key) map.put(Item{key, "a"});
    auto copy = map;
    copy.put(Item{500, "b"});
    unsigned shared = 0;
    for (std::uint32_t key = 0; key < 1000; ++key) shared += map.find(key) == copy.find(key);
    CHECK(shared == 999);
    CHECK(map.find(500)->value == "a");
    CHECK(copy.find(500)->value == "b");
}

}  // namespace
}  // namespace sluice::policy
