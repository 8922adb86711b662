// A zip file of members that are stored as they are, for readers that want them so: NumPy's .npz.
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
  std::vector<std::span<const std::uint8_t>> parts;  // of its contents, one after the other
};

// Offsets and sizes have 32 bits: of the members together, with what stands around them.
inline constexpr std::uint64_t kMostStoredBytes = 0xFFFFFFFFU;

// REQUIRES: fewer than 65535 members, names below 64 KiB, all together at most kMostStoredBytes.
[[nodiscard]] std::string stored_zip(std::span<const StoredMember> members);

}  // namespace disttf::data
