// What --chaos and --chaos_frames say: SEED,RATE.
#pragma once

#include <cstdint>

namespace disttf::roles {

struct ChaosOptions {
  std::uint64_t seed = 0;
  std::uint32_t per_1000 = 0;  // faults expected in 1000 steps, or frames; 0: none
};

// More would be more than one in each.
inline constexpr std::uint32_t kMaxChaosRate = 1000;

}  // namespace disttf::roles
