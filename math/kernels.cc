#include "math/kernels.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "math/kernels_table.h"

namespace disttf::math {
namespace {

struct NamedIsa {
  Isa isa;
  std::string_view name;
};
constexpr std::array<NamedIsa, 3> kIsaNames = {
    {{Isa::kGeneric, "generic"}, {Isa::kAvx2, "avx2"}, {Isa::kAvx512, "avx512"}}};

struct IsaList {
  std::array<Isa, 3> isas{};
  std::size_t count = 0;
  void add(Isa isa) noexcept { isas[count++] = isa; }
};

// What is asked of the CPU is what math/CMakeLists.txt lets the compiler use, no less.
// __builtin_cpu_supports also asks whether the operating system saves the wide registers.
IsaList detect() noexcept {
  IsaList list;
#if defined(DISTTF_X86_64_KERNELS)
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") &&
                          __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  // A whole training step, Eigen 3.4 built by g++ 12: on an Intel Xeon AVX-512 is 1.4 times as fast
  // as AVX2; on an AMD Zen 4, which does 512 bits in two halves, it is slower.
  const bool prefers_avx512 = has_avx512 && __builtin_cpu_is("intel");
  if (prefers_avx512) {
    list.add(Isa::kAvx512);
  }
  if (has_avx2) {
    list.add(Isa::kAvx2);
  }
  if (has_avx512 && !prefers_avx512) {
    list.add(Isa::kAvx512);
  }
#endif
  list.add(Isa::kGeneric);
  return list;
}

}  // namespace

std::string_view isa_name(Isa isa) noexcept {
  for (const NamedIsa& entry : kIsaNames) {
    if (entry.isa == isa) {
      return entry.name;
    }
  }
  return "unknown";
}

std::optional<Isa> isa_from_name(std::string_view name) noexcept {
  for (const NamedIsa& entry : kIsaNames) {
    if (entry.name == name) {
      return entry.isa;
    }
  }
  return std::nullopt;
}

std::span<const Isa> supported_isas() noexcept {
  static const IsaList kList = detect();
  return {kList.isas.data(), kList.count};
}

const Kernels& kernels(Isa isa) noexcept {
  assert(std::ranges::find(supported_isas(), isa) != supported_isas().end());
#if defined(DISTTF_X86_64_KERNELS)
  switch (isa) {
    case Isa::kAvx2:
      return avx2::kKernels;
    case Isa::kAvx512:
      return avx512::kKernels;
    case Isa::kGeneric:
      break;
  }
#endif
  return generic::kKernels;
}

}  // namespace disttf::math
