// SHA-256 as lower-case hex, of bytes, of several spans in sequence, of a file.
//
// A hash object belongs to one thread at a time; the functions are callable from any.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace disttf::data {

// Throws std::runtime_error where libcrypto fails (out of memory; nothing the bytes can cause).
class Sha256 {
 public:
  Sha256();

  void update(std::span<const std::byte> bytes);
  // 64 hex digits over everything given so far. The object then starts anew; or goes on.
  [[nodiscard]] std::string hex();
  [[nodiscard]] std::string hex_so_far() const;

 private:
  struct Free {
    void operator()(void* context) const noexcept;
  };
  // An EVP_MD_CTX, untyped so that OpenSSL's headers stay out of this one.
  std::unique_ptr<void, Free> context_;
};

[[nodiscard]] std::string sha256_hex(std::span<const std::byte> bytes);

// Throws std::system_error naming the file when it cannot be read.
[[nodiscard]] std::string sha256_file(const std::filesystem::path& path);

}  // namespace disttf::data
