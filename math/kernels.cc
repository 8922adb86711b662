#include "math/kernels.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "math/kernels_table.h"
#include "math/names.h"
#include "math/products_trial.h"

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

// Tests for exactly the features that math/CMakeLists.txt enables in the compiler.
// __builtin_cpu_supports also checks whether the operating system saves the wide registers.
IsaList detect() noexcept {
  IsaList list;
#if defined(DISTTF_X86_64_KERNELS)
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") &&
                          __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  // A job of 784-100-10 with AVX-512 is 1.4 times as fast as with AVX2 on an Intel Xeon, and 1.15
  // times on an AMD Zen 4, which processes 512 bits in two halves (for convolutions, 1.35 times).
  // The order of the list is the order of preference: front() is the default of every program.
  if (has_avx512) {
    list.add(Isa::kAvx512);
  }
  if (has_avx2) {
    list.add(Isa::kAvx2);
  }
#elif defined(DISTTF_AARCH64_KERNELS)
  list.add(Isa::kNeon);
#endif
  list.add(Isa::kGeneric);
  return list;
}

#if defined(DISTTF_X86_64_KERNELS)
bool supports_avx512() noexcept {
  const std::span<const Isa> isas = supported_isas();
  return std::ranges::find(isas, Isa::kAvx512) != isas.end();
}

// The tile unit's registers have 8 KB. Linux saves them only for processes that have requested it
// (which enlarges their signal frames by as much); elsewhere the request fails.
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

Bf16Multiplier multiplier_beside_avx512() noexcept {
  if (!supports_avx512()) {
    return Bf16Multiplier::kRoundedFloats;
  }
  if (take_tile_unit()) {
    return Bf16Multiplier::kTileUnit;
  }
  // On Intel one VDPBF16PS takes as long as four float32 instructions, each with half the work: on
  // an Emerald Rapids its products took 1.4 times as long as those of rounded floats. On an AMD Zen
  // 4 they take 0.5 to 0.6 of float32's time. On other CPUs the results are tested before use.
  const bool are_pairs_quick = __builtin_cpu_is("amd") && __builtin_cpu_supports("avx512bf16");
  // The trial also protects against an emulator or a CPU whose VDPBF16PS rounds differently: a run
  // must not depend on the machine.
  return are_pairs_quick && are_bit_identical(avx512_bf16::kProducts, avx512::kKernels.bf16)
             ? Bf16Multiplier::kPairs
             : Bf16Multiplier::kRoundedFloats;
}
#endif

}  // namespace

std::string_view isa_name(Isa isa) noexcept { return name_of(kIsaNames, isa); }

std::span<const Isa> supported_isas() noexcept {
  // Detected once per process; every later call only reads, so no lock is needed.
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

bool can_multiply(Isa isa, ComputeDtype dtype) noexcept {
  return dtype == ComputeDtype::kF32 || isa != Isa::kGeneric;
}

Bf16Multiplier bf16_multiplier([[maybe_unused]] Isa isa) noexcept {
  assert(can_multiply(isa, ComputeDtype::kBf16));
#if defined(DISTTF_X86_64_KERNELS)
  // AVX2 that was chosen although a better set exists must not use AVX-512.
  if (isa == Isa::kAvx512 || isa == supported_isas().front()) {
    // Once per process: requesting the tile unit is a system call, and the trial multiplies
    // matrices.
    static const Bf16Multiplier kBest = multiplier_beside_avx512();
    return kBest;
  }
#endif
  return Bf16Multiplier::kRoundedFloats;
}

std::string_view bf16_multiplier_text(Bf16Multiplier multiplier) noexcept {
  switch (multiplier) {
    case Bf16Multiplier::kTileUnit:
      return "by the tile unit (AMX-BF16)";
    case Bf16Multiplier::kPairs:
      return "by AVX-512's VDPBF16PS";
    case Bf16Multiplier::kRoundedFloats:
      break;
  }
  return "by float32's instructions, which takes longer than float32";
}

const Products& products(Isa isa, ComputeDtype dtype) noexcept {
  assert(can_multiply(isa, dtype));
  if (dtype == ComputeDtype::kF32) {
    return kernels(isa).f32;
  }
#if defined(DISTTF_X86_64_KERNELS)
  switch (bf16_multiplier(isa)) {
    case Bf16Multiplier::kTileUnit:
      return amx::kProducts;
    case Bf16Multiplier::kPairs:
      return avx512_bf16::kProducts;
    case Bf16Multiplier::kRoundedFloats:
      break;
  }
#endif
  return kernels(isa).bf16;
}

}  // namespace disttf::math
