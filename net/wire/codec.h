// Fixed-width little-endian integers in byte buffers, for frame headers and bodies.
//
// Pure; callable from any thread. A reader never reads past its bytes: it fails and stays failed.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace disttf::net {

// On such a machine an integer is one move. Compilers recognise that in a loop over its bytes only
// sometimes.
inline constexpr bool kIsLittleEndian = std::endian::native == std::endian::little;

// REQUIRES: out has at least sizeof(T) bytes.
template <std::unsigned_integral T>
constexpr void store_le(T value, std::span<std::byte> out) noexcept {
  if (kIsLittleEndian && !std::is_constant_evaluated()) {
    std::memcpy(out.data(), &value, sizeof(T));
    return;
  }
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out[i] = static_cast<std::byte>((static_cast<std::uint64_t>(value) >> (8 * i)) & 0xFFU);
  }
}

// REQUIRES: bytes has at least sizeof(T) bytes.
template <std::unsigned_integral T>
[[nodiscard]] constexpr T load_le(std::span<const std::byte> bytes) noexcept {
  if (kIsLittleEndian && !std::is_constant_evaluated()) {
    T whole{};
    std::memcpy(&whole, bytes.data(), sizeof(T));
    return whole;
  }
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  }
  return static_cast<T>(value);
}

// Appends to a vector of bytes.
class ByteWriter {
 public:
  explicit ByteWriter(std::size_t expected_bytes) { bytes_.reserve(expected_bytes); }

  template <std::unsigned_integral T>
  void put(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    store_le(value, std::span(bytes_).subspan(at));
  }
  void put_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  [[nodiscard]] std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Reads untrusted bytes. Past the end it returns zeros, and ok() is false.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}

  template <std::unsigned_integral T>
  [[nodiscard]] T get() noexcept {
    if (rest_.size() < sizeof(T)) {
      fail();
      return 0;
    }
    const T value = load_le<T>(rest_);
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }
  [[nodiscard]] std::span<const std::byte> rest() const noexcept { return rest_; }
  [[nodiscard]] bool ok() const noexcept { return ok_; }
  // Whether every byte was read and none was missing.
  [[nodiscard]] bool complete() const noexcept { return ok_ && rest_.empty(); }

 private:
  void fail() noexcept {
    ok_ = false;
    rest_ = {};
  }

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace disttf::net
