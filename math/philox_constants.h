// Philox4x32-10's published constants (source: math/random.h): two odd multipliers, and the golden
// ratio and sqrt(3) - 1 as 32-bit fractions, which are added to the key between rounds.
#pragma once

#include <cstdint>

namespace disttf::math {

inline constexpr std::uint64_t kPhiloxMultiplier0 = 0xD2511F53;
inline constexpr std::uint64_t kPhiloxMultiplier1 = 0xCD9E8D57;
inline constexpr std::uint32_t kPhiloxKeyStep0 = 0x9E3779B9;
inline constexpr std::uint32_t kPhiloxKeyStep1 = 0xBB67AE85;
inline constexpr int kPhiloxRounds = 10;

}  // namespace disttf::math
