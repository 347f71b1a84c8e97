// SPDX-License-Identifier: Apache-2.0
// OpenFlow's own error numbers (OpenFlow 1.3.5 section 7.4.4, ONF extension 230), as
// typed pairs. What a peer is told, as opposed to sluice::Error, which a person is told.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace sluice::openflow {

inline constexpr std::uint32_t kOnfExperimenter = 0x4f4e4600;

// OFPET_* and its code. With an experimenter the type on the wire is OFPET_EXPERIMENTER
// and `type` is the experimenter's own; such errors have no code.
struct ErrorCode {
    std::uint16_t type = 0;
    std::uint16_t code = 0;
    std::uint32_t experimenter = 0;
    constexpr bool operator==(const ErrorCode&) const = default;
};

namespace error {
inline constexpr ErrorCode kHelloIncompatible{0, 0};
inline constexpr ErrorCode kBadVersion{1, 0};
inline constexpr ErrorCode kBadType{1, 1};
inline constexpr ErrorCode kBadMultipart{1, 2};
inline constexpr ErrorCode kBadExperimenter{1, 3};
inline constexpr ErrorCode kBadExperimenterType{1, 4};
inline constexpr ErrorCode kRequestPermission{1, 5};
inline constexpr ErrorCode kBadLength{1, 6};
inline constexpr ErrorCode kBufferUnknown{1, 8};
inline constexpr ErrorCode kBadRequestTableId{1, 9};
inline constexpr ErrorCode kIsSecondary{1, 10};
inline constexpr ErrorCode kBadPort{1, 11};
inline constexpr ErrorCode kMultipartOverflow{1, 13};
inline constexpr ErrorCode kBadActionType{2, 0};
inline constexpr ErrorCode kUnsupportedActionOrder{2, 11};
inline constexpr ErrorCode kBadSetType{2, 13};
inline constexpr ErrorCode kBadSetArgument{2, 15};
inline constexpr ErrorCode kUnknownInstruction{3, 0};
inline constexpr ErrorCode kUnsupportedInstruction{3, 1};
inline constexpr ErrorCode kBadGotoTable{3, 2};
inline constexpr ErrorCode kBadMatchField{4, 6};
inline constexpr ErrorCode kBadMatchValue{4, 7};
inline constexpr ErrorCode kBadMatchMask{4, 8};
inline constexpr ErrorCode kBadMatchPrerequisite{4, 9};
inline constexpr ErrorCode kDuplicateMatchField{4, 10};
inline constexpr ErrorCode kFlowModUnknown{5, 0};
inline constexpr ErrorCode kTableFull{5, 1};
inline constexpr ErrorCode kBadTableId{5, 2};
inline constexpr ErrorCode kOverlap{5, 3};
inline constexpr ErrorCode kFlowModPermission{5, 4};
inline constexpr ErrorCode kBadTimeout{5, 5};
inline constexpr ErrorCode kBadCommand{5, 6};
inline constexpr ErrorCode kBadFlags{5, 7};
inline constexpr ErrorCode kGroupModUnknown{6, 5};
inline constexpr ErrorCode kPortModBadPort{7, 0};
inline constexpr ErrorCode kPortModPermission{7, 4};
inline constexpr ErrorCode kTableModPermission{8, 2};
inline constexpr ErrorCode kQueueBadPort{9, 0};
inline constexpr ErrorCode kBadConfigFlags{10, 0};
inline constexpr ErrorCode kStaleRole{11, 0};
inline constexpr ErrorCode kBadRole{11, 2};
inline constexpr ErrorCode kMeterModUnknown{12, 0};
inline constexpr ErrorCode kMeterExists{12, 1};
inline constexpr ErrorCode kInvalidMeter{12, 2};
inline constexpr ErrorCode kUnknownMeter{12, 3};
inline constexpr ErrorCode kBadMeterFlags{12, 5};
inline constexpr ErrorCode kBadRate{12, 6};
inline constexpr ErrorCode kBadBand{12, 8};
inline constexpr ErrorCode kOutOfMeters{12, 10};
inline constexpr ErrorCode kTableFeaturesPermission{13, 5};
// Of this project: a query that the backend could not answer.
inline constexpr ErrorCode kQueryRefused{1, 0, 0x0002534c};
inline constexpr ErrorCode kBadPriority{2360, 0, kOnfExperimenter};
inline constexpr ErrorCode kBundleUnknown{2300, 0, kOnfExperimenter};
inline constexpr ErrorCode kBundlePermission{2301, 0, kOnfExperimenter};
inline constexpr ErrorCode kBundleBadId{2302, 0, kOnfExperimenter};
inline constexpr ErrorCode kBundleExists{2303, 0, kOnfExperimenter};
inline constexpr ErrorCode kBundleClosed{2304, 0, kOnfExperimenter};
inline constexpr ErrorCode kOutOfBundles{2305, 0, kOnfExperimenter};
inline constexpr ErrorCode kBundleBadType{2306, 0, kOnfExperimenter};
inline constexpr ErrorCode kBundleBadFlags{2307, 0, kOnfExperimenter};
inline constexpr ErrorCode kBundleBadLength{2308, 0, kOnfExperimenter};
inline constexpr ErrorCode kBundleBadXid{2309, 0, kOnfExperimenter};
inline constexpr ErrorCode kBundleUnsupported{2310, 0, kOnfExperimenter};
inline constexpr ErrorCode kBundleConflict{2311, 0, kOnfExperimenter};
inline constexpr ErrorCode kBundleTooMany{2312, 0, kOnfExperimenter};
inline constexpr ErrorCode kBundleFailed{2313, 0, kOnfExperimenter};
inline constexpr ErrorCode kBundleTimeout{2314, 0, kOnfExperimenter};
}  // namespace error

struct WireError {
    ErrorCode code;
    std::string message;  // one sentence, for the log
};

// "OFPFMFC_TABLE_FULL": the standard's name, or the numbers where it has none.
std::string to_string(const ErrorCode& code);

// A value read from a message, or what to answer instead.
template <class T>
class [[nodiscard]] Decoded {
  public:
    Decoded(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Decoded(WireError error) : state_(std::in_place_index<1>, std::move(error)) {}
    Decoded(ErrorCode code) : Decoded(WireError{code, {}}) {}

    [[nodiscard]] bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }
    T& operator*() & { return std::get<0>(state_); }
    const T& operator*() const& { return std::get<0>(state_); }
    T&& operator*() && { return std::get<0>(std::move(state_)); }
    T* operator->() { return &std::get<0>(state_); }
    const T* operator->() const { return &std::get<0>(state_); }
    [[nodiscard]] const WireError& error() const { return std::get<1>(state_); }

  private:
    std::variant<T, WireError> state_;
};

}  // namespace sluice::openflow
