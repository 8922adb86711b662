// A fixture for properties of every instruction set: a test runs once for each known one, and is
// skipped with a reason if this machine cannot run it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "math/kernels.h"

namespace disttf::math {

class IsaTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (std::ranges::find(supported_isas(), isa()) == supported_isas().end()) {
      GTEST_SKIP() << "this machine, or this build, has no " << isa_name(isa());
    }
  }
  [[nodiscard]] static Isa isa() { return GetParam(); }
};

inline std::string isa_test_name(const testing::TestParamInfo<Isa>& info) {
  return std::string(isa_name(info.param));
}

// GoogleTest uses it to print a value.
inline void PrintTo(Isa isa, std::ostream* out) { *out << isa_name(isa); }

#if defined(__aarch64__)
inline constexpr Isa kEveryIsa[] = {Isa::kGeneric, Isa::kNeon};
#else
inline constexpr Isa kEveryIsa[] = {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512};
#endif

// Returns the bits, for comparisons in which 0 and -0 differ and a NaN equals itself.
inline std::vector<std::uint32_t> bits_of(std::span<const float> values) {
  std::vector<std::uint32_t> bits;
  bits.reserve(values.size());
  for (const float value : values) {
    bits.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return bits;
}

}  // namespace disttf::math
