// Writes a zip file with uncompressed members, as NumPy's .npz needs.
//
// A pure function; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace disttf::data {

struct StoredMember {
  std::string name;
  std::vector<std::span<const std::uint8_t>> parts;  // the contents, one part after the other
};

// The limit for all members together, with their headers: offsets and sizes have 32 bits.
inline constexpr std::uint64_t kMostStoredBytes = 0xFFFFFFFFU;

// REQUIRES: fewer than 65535 members, names below 64 KiB, all together at most kMostStoredBytes.
[[nodiscard]] std::string stored_zip(std::span<const StoredMember> members);

}  // namespace disttf::data
