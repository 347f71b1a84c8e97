// SPDX-License-Identifier: Apache-2.0
// Differences of lists. Private to the model.
#pragma once

#include <algorithm>
#include <vector>

namespace sluice::model {

// The items of `mine` that `theirs` does not have, whatever their order there.
template <class T>
std::vector<T> items_only_in(const std::vector<T>& mine, const std::vector<T>& theirs) {
    std::vector<const T*> known;
    known.reserve(theirs.size());
    for (const T& item : theirs) known.push_back(&item);
    const auto before = [](const T* a, const T* b) { return *a < *b; };
    std::sort(known.begin(), known.end(), before);
    std::vector<T> result;
    for (const T& item : mine)
        if (!std::binary_search(known.begin(), known.end(), &item, before)) result.push_back(item);
    return result;
}

}  // namespace sluice::model
