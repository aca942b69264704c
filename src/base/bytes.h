// A value as the bytes it lies in memory with: what is written to the device.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace doppler {

template <class T>
std::span<const uint8_t> bytes_of(const T& value) {
  static_assert(std::is_trivially_copy_constructible_v<T>);
  return {reinterpret_cast<const uint8_t*>(&value), sizeof(T)};
}

template <class T>
std::span<const uint8_t> bytes_of(const std::vector<T>& values) {
  static_assert(std::is_trivially_copy_constructible_v<T>);
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)};
}

template <class T, size_t N>
std::span<const uint8_t> bytes_of(std::span<T, N> values) {
  static_assert(std::is_trivially_copy_constructible_v<T>);
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()};
}

}  // namespace doppler
