// SPDX-License-Identifier: Apache-2.0
// What a fallible operation of the control side returns: a value, or an error that
// names the place and the cause. (std::expected needs C++23.) Never used on the packet
// path, where a result is a plain enumerator.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace sluice {

struct Error {
    enum class Code {
        invalid,      // the input can never be right
        unsupported,  // right, but not by this table, field or release
        conflict,     // right, but not in the present state
        not_found,
        exhausted,    // a capacity or quota is used up
        unavailable,  // the environment: a file, a device, a peer
        read_only,    // built in, or not the caller's to change
    };
    Code code = Code::invalid;
    std::string message;  // one sentence: the cause and, where there is one, what to do
    std::string path;     // what it is about: a JSON pointer, a TOML key, "table.field"
};

template <class T>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    [[nodiscard]] bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }
    // Only when ok().
    T& operator*() & { return std::get<0>(state_); }
    const T& operator*() const& { return std::get<0>(state_); }
    T&& operator*() && { return std::get<0>(std::move(state_)); }
    T* operator->() { return &std::get<0>(state_); }
    const T* operator->() const { return &std::get<0>(state_); }
    // Only when !ok().
    [[nodiscard]] const Error& error() const { return std::get<1>(state_); }

  private:
    std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
  public:
    Result() = default;
    Result(Error error) : error_(std::move(error)), ok_(false) {}

    [[nodiscard]] bool ok() const { return ok_; }
    explicit operator bool() const { return ok_; }
    [[nodiscard]] const Error& error() const { return error_; }

  private:
    Error error_;
    bool ok_ = true;
};

}  // namespace sluice
