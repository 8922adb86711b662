// The licences of disttf and of every component that is linked into the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace disttf {

// A text as the program contains it: one gzip member that unpacks to `bytes` bytes.
struct EmbeddedText {
  std::span<const std::uint8_t> gzip;
  std::size_t bytes = 0;
};

// NOTICE, LICENSE and the texts of deploy/licenses/, in this order. A constant, written by
// cmake/embed_licenses.cmake.
[[nodiscard]] EmbeddedText embedded_licenses() noexcept;

// The unpacked texts, which `disttf licenses` prints. Throws std::bad_alloc, and std::system_error
// if the program's bytes are damaged.
[[nodiscard]] std::string licenses_text();

}  // namespace disttf
