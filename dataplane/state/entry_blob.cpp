// SPDX-License-Identifier: Apache-2.0
#include "dataplane/state/entry_blob.hpp"

#include <concepts>

namespace sluice::state {
namespace {

using openflow::Entry;
using openflow::EntryKey;
using openflow::Field;
using openflow::U128;

template <std::unsigned_integral T>
void write(Octets& out, T value) {
    for (int shift = (static_cast<int>(sizeof(T)) - 1) * 8; shift >= 0; shift -= 8)
        out.push_back(static_cast<char>(value >> shift & 0xff));
}
void write(Octets& out, const U128& value) {
    write(out, value.high);
    write(out, value.low);
}

class Input {
  public:
    explicit Input(std::span<const char> octets) : octets_(octets) {}

    template <std::unsigned_integral T>
    T number() {
        std::uint64_t value = 0;
        if (octets_.size() < sizeof(T)) {
            broken_ = true;
            octets_ = {};
            return 0;
        }
        for (std::size_t i = 0; i < sizeof(T); ++i)
            value = value << 8 | static_cast<unsigned char>(octets_[i]);
        octets_ = octets_.subspan(sizeof(T));
        return static_cast<T>(value);
    }
    U128 u128() {
        const auto high = number<std::uint64_t>();
        return {high, number<std::uint64_t>()};
    }
    Field field() {
        const auto value = number<std::uint8_t>();
        if (value >= static_cast<std::uint8_t>(Field::count)) broken_ = true;
        return static_cast<Field>(value);
    }
    [[nodiscard]] bool broken() const { return broken_; }
    // Read to the end, and nothing was missing.
    [[nodiscard]] bool complete() const { return !broken_ && octets_.empty(); }

  private:
    std::span<const char> octets_;
    bool broken_ = false;
};

}  // namespace

Octets encode_key(const EntryKey& key) {
    Octets out;
    write(out, key.table);
    write(out, key.priority);
    write(out, static_cast<std::uint8_t>(key.match.size()));
    for (const auto& match : key.match) {
        write(out, static_cast<std::uint8_t>(match.field));
        write(out, match.value);
        write(out, match.mask);
    }
    return out;
}

Octets encode_body(const Entry& entry) {
    Octets out;
    write(out, entry.cookie.value);
    write(out, entry.meter.value);
    write(out, static_cast<std::uint8_t>(entry.next.has_value()));
    write(out, entry.next.value_or(0));
    write(out, static_cast<std::uint16_t>(entry.set.size()));
    for (const auto& set : entry.set) {
        write(out, static_cast<std::uint8_t>(set.field));
        write(out, set.value);
    }
    return out;
}

std::optional<Entry> decode(std::span<const char> key, std::span<const char> body) {
    Entry entry;
    Input in(key);
    entry.key.table = in.number<std::uint8_t>();
    entry.key.priority = in.number<std::uint16_t>();
    for (unsigned left = in.number<std::uint8_t>(); left > 0 && !in.broken(); --left) {
        const auto field = in.field();
        const auto value = in.u128();
        entry.key.match.push_back({field, value, in.u128()});
    }
    if (!in.complete()) return std::nullopt;

    in = Input(body);
    entry.cookie = Cookie{in.number<std::uint64_t>()};
    entry.meter = MeterId{in.number<std::uint32_t>()};
    const bool goes_on = in.number<std::uint8_t>() != 0;
    const auto next = in.number<std::uint8_t>();
    if (goes_on) entry.next = next;
    for (unsigned left = in.number<std::uint16_t>(); left > 0 && !in.broken(); --left) {
        const auto field = in.field();
        entry.set.push_back({field, in.u128()});
    }
    if (!in.complete()) return std::nullopt;
    return entry;
}

}  // namespace sluice::state
