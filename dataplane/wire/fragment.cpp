// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/fragment.hpp"

#include <algorithm>

#include "dataplane/wire/checksum.hpp"

namespace sluice::wire {
namespace {

constexpr std::size_t kUnit = 8;  // of the offset field, octets
constexpr std::size_t kMaxDatagram = 65535;

constexpr std::uint16_t rounded_down(std::size_t octets) {
    return static_cast<std::uint16_t>(octets / kUnit * kUnit);
}

}  // namespace

std::optional<FragmentPlan::Header> FragmentPlan::later_header(
    std::span<const std::uint8_t> header) {
    constexpr std::uint8_t kEnd = 0, kNoOperation = 1, kCopied = 0x80;
    Header result;
    std::copy_n(header.begin(), ipv4::kSize, result.octets.begin());
    std::size_t length = ipv4::kSize;
    for (std::size_t at = ipv4::kSize; at < header.size() && header[at] != kEnd;) {
        if (header[at] == kNoOperation) {
            ++at;
            continue;
        }
        if (header.size() - at < 2 || header[at + 1] < 2 || header[at + 1] > header.size() - at)
            return std::nullopt;
        const std::size_t size = header[at + 1];
        if ((header[at] & kCopied) != 0) {
            std::copy_n(header.begin() + static_cast<std::ptrdiff_t>(at), size,
                        result.octets.begin() + static_cast<std::ptrdiff_t>(length));
            length += size;
        }
        at += size;
    }
    // What is left of the last word is zero: end of options.
    length = (length + 3) / 4 * 4;
    result.octets[0] = static_cast<std::uint8_t>(0x40 | length / 4);
    result.length = static_cast<std::uint16_t>(length);
    return result;
}

std::optional<FragmentPlan> FragmentPlan::make(std::span<const std::uint8_t> packet,
                                               std::size_t mtu) {
    if (mtu < ipv4::kMinMtu || packet.size() < ipv4::kSize || packet[0] >> 4 != 4)
        return std::nullopt;
    const std::size_t header = ipv4::header_length(packet.data());
    const std::size_t length = load16(packet.data() + ipv4::kLength).host();
    if (header < ipv4::kSize || header > packet.size() || header > length) return std::nullopt;
    const auto later = later_header(packet.first(header));
    if (!later) return std::nullopt;

    const std::uint16_t flags = load16(packet.data() + ipv4::kFragment).host();
    FragmentPlan plan;
    std::copy_n(packet.begin(), header, plan.first_.octets.begin());
    plan.first_.length = static_cast<std::uint16_t>(header);
    plan.later_ = *later;
    plan.payload_ = static_cast<std::uint16_t>(length - header);
    plan.base_ = static_cast<std::uint16_t>((flags & ipv4::kOffsetMask) * kUnit);
    plan.more_ = (flags & ipv4::kMoreFragments) != 0;
    if ((plan.more_ && plan.payload_ % kUnit != 0) || length + plan.base_ > kMaxDatagram)
        return std::nullopt;

    if (length <= mtu) {
        plan.first_payload_ = plan.payload_;
        return plan;
    }
    if ((flags & ipv4::kDontFragment) != 0) return std::nullopt;
    plan.first_payload_ = rounded_down(mtu - header);
    plan.later_payload_ = rounded_down(mtu - plan.later_.length);
    // All but the last are cut at multiples of eight; the last takes what fits.
    const std::size_t rest = plan.payload_ - std::size_t{plan.first_payload_};
    const std::size_t last = mtu - plan.later_.length;
    const std::size_t full =
        rest > last ? (rest - last + plan.later_payload_ - 1) / plan.later_payload_ : 0;
    plan.count_ = 2 + full;
    return plan;
}

Fragment FragmentPlan::operator[](std::size_t index) const {
    if (index == 0) return {first_.length, first_.length, first_payload_};
    const std::size_t before = first_payload_ + (index - 1) * later_payload_;
    const std::size_t left = payload_ - before;
    return {later_.length, static_cast<std::uint16_t>(first_.length + before),
            static_cast<std::uint16_t>(index + 1 == count_ ? left : later_payload_)};
}

std::size_t FragmentPlan::write_header(std::size_t index, std::span<std::uint8_t> out) const {
    const Header& header = index == 0 ? first_ : later_;
    const Fragment fragment = (*this)[index];
    std::copy_n(header.octets.begin(), header.length, out.begin());
    store(out.data() + ipv4::kLength,
          be16{static_cast<std::uint16_t>(header.length + fragment.payload_length)});
    // The original's flags stay, but for "more": so does its offset, as the base.
    const std::size_t offset = base_ + fragment.payload_offset - std::size_t{first_.length};
    std::uint16_t flags = load16(out.data() + ipv4::kFragment).host();
    flags = static_cast<std::uint16_t>(flags & ~(ipv4::kMoreFragments | ipv4::kOffsetMask));
    flags = static_cast<std::uint16_t>(flags | offset / kUnit);
    if (more_ || index + 1 < count_) flags |= ipv4::kMoreFragments;
    store(out.data() + ipv4::kFragment, be16{flags});
    store(out.data() + ipv4::kChecksum, ipv4_header_checksum(out.first(header.length)));
    return header.length;
}

}  // namespace sluice::wire
