// Checksums: CRC-32C and SHA-256.
//
// CRC-32C (Castagnoli): the checksum of TensorBoard's event files and of objects in Google Cloud
// Storage.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace disttf::data {

// Returns the checksum of `bytes`. `before` is the checksum of the bytes that precede them, so a
// text can be passed in pieces.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes,
                                   std::uint32_t before = 0) noexcept;
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes) noexcept;

// Returns the masked form that event files store: rotated right by 15 bits, plus a constant. The
// mask keeps the checksum meaningful for data that itself contains checksums.
[[nodiscard]] std::uint32_t masked_crc32c(std::string_view bytes) noexcept;

// SHA-256 as lower-case hex, of bytes, of several spans in sequence, or of a file.
//
// One thread at a time may use a hash object; the functions are callable from any thread.

// Throws std::runtime_error if libcrypto fails (out of memory; the input cannot cause it).
class Sha256 {
 public:
  Sha256();

  void update(std::span<const std::byte> bytes);
  // hex() returns 64 hex digits over all updates so far and resets the object; hex_so_far() does
  // not reset it.
  [[nodiscard]] std::string hex();
  [[nodiscard]] std::string hex_so_far() const;

 private:
  struct Free {
    void operator()(void* context) const noexcept;
  };
  // An EVP_MD_CTX, untyped so that OpenSSL's headers stay out of this one.
  std::unique_ptr<void, Free> context_;
};

// Returns the hash of `bytes`.
[[nodiscard]] std::string sha256_hex(std::span<const std::byte> bytes);

// Returns the hash of a file. Throws std::system_error with its name if it cannot be read.
[[nodiscard]] std::string sha256_file(const std::filesystem::path& path);

}  // namespace disttf::data
