// Result<T>: what a function that can fail returns, a T or the Error that explains why there is none. It has the names
// of std::expected (C++23) that Doppler uses, works with C++20, and is the same class whatever language a program is
// compiled as, so that libdoppler.so and its users agree on it.
//
//   doppler::Result<int> half(int n) {
//     if (n % 2 != 0) return doppler::Unexpected({doppler::ErrorKind::kInvalidInput, "The number is odd."});
//     return n / 2;
//   }
//   if (auto n = half(3); !n) report(n.error().message());
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "doppler/error.h"

namespace doppler {

// An error on its way into any Result.
class Unexpected {
 public:
  explicit Unexpected(Error error) : error_(std::move(error)) {}
  Error& error() & { return error_; }
  const Error& error() const& { return error_; }
  Error&& error() && { return std::move(error_); }

 private:
  Error error_;
};

template <class T = void>
class Result;

namespace result_detail {

template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<Result<T>> = true;

// A Result<T> may be made from anything that makes a T, but neither from an error nor from another Result.
template <class U, class T>
concept ValueFor = !is_result<std::remove_cvref_t<U>> &&
                   !std::is_same_v<std::remove_cvref_t<U>, Unexpected> && std::is_constructible_v<T, U>;

}  // namespace result_detail

// Reading the value of a Result that has none (*, ->), or the error of one that has a value, is undefined; value() ends
// the program instead, because nothing in Doppler throws.
template <class T>
class [[nodiscard]] Result {
  static_assert(std::is_object_v<T> && !std::is_const_v<T>, "A Result holds a value that can be moved.");

 public:
  using value_type = T;
  using error_type = Error;

  Result()
    requires std::is_default_constructible_v<T>
      : value_(), has_value_(true) {}
  template <class U = T>
    requires result_detail::ValueFor<U, T>
  explicit(!std::is_convertible_v<U, T>) Result(U&& value)
      : value_(std::forward<U>(value)), has_value_(true) {}
  Result(Unexpected unexpected) : error_(std::move(unexpected).error()), has_value_(false) {}
  template <class U>
    requires(!std::is_same_v<U, T> && std::is_convertible_v<U, T>)
  Result(Result<U> other) : has_value_(other.has_value()) {
    if (has_value_) {
      std::construct_at(std::addressof(value_), *std::move(other));
    } else {
      std::construct_at(std::addressof(error_), std::move(other).error());
    }
  }
  Result(const Result& other)
    requires std::is_copy_constructible_v<T>
      : has_value_(other.has_value_) {
    if (has_value_) {
      std::construct_at(std::addressof(value_), other.value_);
    } else {
      std::construct_at(std::addressof(error_), other.error_);
    }
  }
  Result(Result&& other) noexcept(std::is_nothrow_move_constructible_v<T>) : has_value_(other.has_value_) {
    take(std::move(other));
  }
  Result& operator=(const Result& other)
    requires std::is_copy_constructible_v<T>
  {
    return *this = Result(other);
  }
  // The old content ends before the new one is made: a T whose move throws must not be assigned.
  Result& operator=(Result&& other) noexcept {
    if (this == &other) return *this;
    end();
    has_value_ = other.has_value_;
    take(std::move(other));
    return *this;
  }
  ~Result() { end(); }

  bool has_value() const { return has_value_; }
  explicit operator bool() const { return has_value_; }

  T& operator*() & { return value_; }
  const T& operator*() const& { return value_; }
  T&& operator*() && { return std::move(value_); }
  const T&& operator*() const&& { return std::move(value_); }
  T* operator->() { return std::addressof(value_); }
  const T* operator->() const { return std::addressof(value_); }

  T& value() & { return check(), value_; }
  const T& value() const& { return check(), value_; }
  T&& value() && { return check(), std::move(value_); }
  const T&& value() const&& { return check(), std::move(value_); }
  template <class U>
  T value_or(U&& otherwise) const& {
    return has_value_ ? value_ : static_cast<T>(std::forward<U>(otherwise));
  }
  template <class U>
  T value_or(U&& otherwise) && {
    return has_value_ ? std::move(value_) : static_cast<T>(std::forward<U>(otherwise));
  }

  Error& error() & { return error_; }
  const Error& error() const& { return error_; }
  Error&& error() && { return std::move(error_); }
  const Error&& error() const&& { return std::move(error_); }

 private:
  void take(Result&& other) {
    if (has_value_) {
      std::construct_at(std::addressof(value_), std::move(other.value_));
    } else {
      std::construct_at(std::addressof(error_), std::move(other.error_));
    }
  }
  void end() {
    if (has_value_) {
      std::destroy_at(std::addressof(value_));
    } else {
      std::destroy_at(std::addressof(error_));
    }
  }
  void check() const {
    if (!has_value_) std::abort();
  }

  union {
    T value_;
    Error error_;
  };
  bool has_value_;
};

// Success, or the error.
template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  using error_type = Error;

  Result() = default;
  Result(Unexpected unexpected) : error_(std::move(unexpected).error()) {}

  bool has_value() const { return !error_; }
  explicit operator bool() const { return !error_; }
  void operator*() const {}
  void value() const {
    if (error_) std::abort();
  }

  Error& error() & { return *error_; }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }
  const Error&& error() const&& { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

}  // namespace doppler
