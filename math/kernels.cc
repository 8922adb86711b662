#include "math/kernels.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "math/kernels_table.h"
#include "math/names.h"

#if defined(DISTTF_X86_64_KERNELS)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace disttf::math {
namespace {

struct IsaList {
  std::array<Isa, kIsaNames.size()> isas{};
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
#elif defined(DISTTF_AARCH64_KERNELS)
  list.add(Isa::kNeon);
#endif
  list.add(Isa::kGeneric);
  return list;
}

#if defined(DISTTF_X86_64_KERNELS)
// The tile unit's registers are 8 KB, which Linux saves only for processes that have asked for it
// (and which makes the frames of their signals as much larger); elsewhere this is refused.
bool take_tile_unit() noexcept {
  constexpr unsigned kAmxBf16 = 1U << 22U;
  constexpr unsigned kAmxTile = 1U << 24U;
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kAmxBf16) != 0 &&
         (d & kAmxTile) != 0 && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

}  // namespace

std::string_view isa_name(Isa isa) noexcept { return name_of(kIsaNames, isa); }

std::optional<Isa> isa_from_name(std::string_view name) noexcept {
  return value_of<Isa>(kIsaNames, name);
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
    case Isa::kNeon:
    case Isa::kGeneric:
      break;
  }
#elif defined(DISTTF_AARCH64_KERNELS)
  if (isa == Isa::kNeon) {
    return neon::kKernels;
  }
#endif
  return generic::kKernels;
}

std::string_view compute_dtype_name(ComputeDtype dtype) noexcept {
  return name_of(kComputeDtypeNames, dtype);
}

std::optional<ComputeDtype> compute_dtype_from_name(std::string_view name) noexcept {
  return value_of<ComputeDtype>(kComputeDtypeNames, name);
}

bool can_multiply(Isa isa, ComputeDtype dtype) noexcept {
  return dtype == ComputeDtype::kF32 || isa != Isa::kGeneric;
}

const Products& products(Isa isa, ComputeDtype dtype) noexcept {
  assert(can_multiply(isa, dtype));
  if (dtype == ComputeDtype::kF32) {
    return kernels(isa).f32;
  }
#if defined(DISTTF_X86_64_KERNELS)
  if (isa == Isa::kAvx512) {
    static const bool kHasTileUnit = take_tile_unit();
    if (kHasTileUnit) {
      return amx::kProducts;
    }
  }
#endif
  return kernels(isa).bf16;
}

}  // namespace disttf::math
