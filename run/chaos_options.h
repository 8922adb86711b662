// The value of --chaos and --chaos_frames: SEED,RATE.
#pragma once

#include <cstdint>

namespace disttf::roles {

struct ChaosOptions {
  std::uint64_t seed = 0;
  std::uint32_t per_1000 = 0;  // expected faults in 1000 steps or frames; 0: none
};

// A higher rate would mean more than one fault in each.
inline constexpr std::uint32_t kMaxChaosRate = 1000;

}  // namespace disttf::roles
