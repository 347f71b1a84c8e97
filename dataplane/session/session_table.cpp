// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/session_table.hpp"

#include <algorithm>
#include <bit>

namespace sluice::session {

namespace {
// The first bucket is taken while it has room to spare, so that most look-ups end there.
constexpr unsigned kCrowded = 6;

std::size_t bucket_count(std::uint32_t capacity) {
    // Two flows a connection, at most three quarters full on average.
    const std::uint64_t wanted = (2ULL * capacity + 5) / 6 + 1;
    return std::bit_ceil(wanted);
}
}  // namespace

template <class Family>
SessionTable<Family>::SessionTable(const TableOptions& options, reclaim::Qsbr& qsbr)
    : seed_(options.seed),
      mask_(bucket_count(options.capacity) - 1),
      buckets_(options.allocate, mask_ + 1),
      flows_(options.allocate, std::size_t{options.capacity} * 2),
      connections_(options.allocate, options.capacity),
      pool_(options.allocate, options.capacity, qsbr, options.workers) {}

template <class Family>
bool SessionTable<Family>::ok() const {
    return buckets_.ok() && flows_.ok() && connections_.ok() && pool_.ok();
}

template <class Family>
FlowIndex SessionTable<Family>::find_in(std::size_t bucket, std::uint16_t tag,
                                        const Key& key) const {
    const Bucket& line = buckets_[bucket];
    for (unsigned slots = line.matching(tag); slots != 0; slots &= slots - 1) {
        const FlowIndex index = line.flow(static_cast<unsigned>(__builtin_ctz(slots)));
        if (flows_[index.value].key == key) return index;
    }
    return kNoFlow;
}

template <class Family>
FlowIndex SessionTable<Family>::find(const Key& key, std::uint64_t hash) const {
    const FlowIndex found = find_in(first(hash), tag(hash), key);
    return found != kNoFlow ? found : find_in(second(hash), tag(hash), key);
}

template <class Family>
ConnectionIndex SessionTable<Family>::take(unsigned worker) {
    const ConnectionIndex index = pool_.take(worker);
    if (index != kNoConnection) connections_[index.value].set(Life::building, TcpState::none);
    return index;
}

template <class Family>
void SessionTable<Family>::give_back(unsigned worker, ConnectionIndex index) {
    connections_[index.value].set(Life::free, TcpState::none);
    pool_.give_back(worker, index);
}

template <class Family>
SessionTable<Family>::Locked::Locked(SessionTable& table, std::uint64_t one, std::uint64_t other)
    : table_(table) {
    buckets_ = {table.first(one), table.second(one), table.first(other), table.second(other)};
    std::sort(buckets_.begin(), buckets_.end());
    count_ =
        static_cast<unsigned>(std::unique(buckets_.begin(), buckets_.end()) - buckets_.begin());
    for (unsigned i = 0; i < count_; ++i) table_.buckets_[buckets_[i]].lock.lock();
}

template <class Family>
SessionTable<Family>::Locked::~Locked() {
    for (unsigned i = 0; i < count_; ++i) table_.buckets_[buckets_[i]].lock.unlock();
}

template <class Family>
bool SessionTable<Family>::place(std::uint64_t hash, FlowIndex flow) {
    Bucket* bucket = &buckets_[first(hash)];
    const unsigned used = bucket->used();
    if (used >= kCrowded) {
        Bucket* other = &buckets_[second(hash)];
        if (other->used() < used) bucket = other;
    }
    const unsigned empty = bucket->matching(0);
    if (empty == 0) return false;
    bucket->put(static_cast<unsigned>(__builtin_ctz(empty)), tag(hash), flow);
    return true;
}

template <class Family>
void SessionTable<Family>::remove(std::uint64_t hash, FlowIndex flow) {
    for (const std::size_t index : {first(hash), second(hash)}) {
        Bucket& bucket = buckets_[index];
        for (unsigned slots = bucket.matching(tag(hash)); slots != 0; slots &= slots - 1) {
            const auto slot = static_cast<unsigned>(__builtin_ctz(slots));
            if (bucket.flow(slot) == flow) {
                bucket.clear(slot);
                return;
            }
        }
    }
}

template <class Family>
Insertion SessionTable<Family>::insert(unsigned worker, ConnectionIndex index, TcpState state,
                                       std::uint32_t flags) {
    const FlowIndex forward = forward_of(index);
    const FlowIndex reverse = reverse_of(index);
    const Key& forward_key = flows_[forward.value].key;
    const Key& reverse_key = flows_[reverse.value].key;
    if (forward_key == reverse_key) return Insertion::reverse_exists;
    const std::uint64_t forward_hash = hash(forward_key);
    const std::uint64_t reverse_hash = hash(reverse_key);

    const Locked locked(*this, forward_hash, reverse_hash);
    if (find(forward_key, forward_hash) != kNoFlow) return Insertion::forward_exists;
    if (find(reverse_key, reverse_hash) != kNoFlow) return Insertion::reverse_exists;
    // Live before it can be found: a reader must not take it for ended.
    connections_[index.value].set(Life::live, state, flags);
    if (!place(forward_hash, forward)) {
        give_back(worker, index);
        return Insertion::full;
    }
    if (!place(reverse_hash, reverse)) {
        // A reader may have found the forward flow by now: the record must rest. Whoever else
        // ends it meanwhile waits for these locks, then retires it.
        remove(forward_hash, forward);
        if (connections_[index.value].end() == 0) return Insertion::full_and_ended;
        pool_.retire(worker, index);
        return Insertion::full;
    }
    return Insertion::done;
}

template <class Family>
std::uint32_t SessionTable<Family>::end(unsigned worker, ConnectionIndex index) {
    const std::uint32_t before = connections_[index.value].end();
    if (before == 0) return 0;
    const FlowIndex forward = forward_of(index);
    const FlowIndex reverse = reverse_of(index);
    const std::uint64_t forward_hash = hash(flows_[forward.value].key);
    const std::uint64_t reverse_hash = hash(flows_[reverse.value].key);
    {
        const Locked locked(*this, forward_hash, reverse_hash);
        remove(forward_hash, forward);
        remove(reverse_hash, reverse);
    }
    pool_.retire(worker, index);
    return before;
}

template <class Family>
bool SessionTable<Family>::answered(ConnectionIndex index) const {
    return flows_[forward_of(index).value].state.packets.load(std::memory_order_relaxed) != 0 &&
           flows_[reverse_of(index).value].state.packets.load(std::memory_order_relaxed) != 0;
}

template <class Family>
bool SessionTable<Family>::idle_too_long(ConnectionIndex index, const ZoneSettings& zones,
                                         Tick now) const {
    const Connection& connection = connections_[index.value];
    const auto idle_since = [&](FlowIndex flow) {
        return now.since(Tick{flows_[flow.value].state.last_seen.load(std::memory_order_relaxed)});
    };
    const std::uint64_t idle =
        std::min(idle_since(forward_of(index)), idle_since(reverse_of(index)));
    const Timeout which = timeout_of(flows_[forward_of(index).value].key.protocol(),
                                     connection.tcp_state(), answered(index));
    return idle > zones.timeout(connection.zone_slot, which) || zones.closed(connection.zone_slot);
}

template class SessionTable<Ipv4>;
template class SessionTable<Ipv6>;

}  // namespace sluice::session
