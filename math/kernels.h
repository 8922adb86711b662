// The arithmetic that is compiled once per instruction set and selected at start.
//
// One portable binary contains every set. The same source (kernels_impl.inc) is compiled per ISA,
// with Eigen in a namespace of its own, so that no inline function of one set is linked into
// another (tests/math/kernels_symbols_test.cmake checks that). Matrix products differ between sets
// in the last bits, so the chief publishes which set a run uses. For one set they are bit-identical
// on every machine that has it. Everything else is bit-identical on all sets.
//
// The tables are constant after start-up; functions are callable from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace disttf::math {

// generic: the target's baseline. neon: aarch64, which always has it.
enum class Isa : std::uint8_t { kGeneric, kAvx2, kAvx512, kNeon };
inline constexpr std::array<std::string_view, 4> kIsaNames = {"generic", "avx2", "avx512", "neon"};

[[nodiscard]] std::string_view isa_name(Isa isa) noexcept;  // "generic", ...
// The sets that this binary contains and this CPU can run, fastest (the default) first.
[[nodiscard]] std::span<const Isa> supported_isas() noexcept;

// The type that operands of matrix products are rounded to; sums are float32
// (math/kernels_table.h).
enum class ComputeDtype : std::uint8_t { kF32, kBf16 };
inline constexpr std::array<std::string_view, 2> kComputeDtypeNames = {"f32", "bf16"};

[[nodiscard]] std::string_view compute_dtype_name(ComputeDtype dtype) noexcept;  // "f32", "bf16"
// Whether a set supports the type: bfloat16 needs fused multiply-adds, which the generic set lacks.
[[nodiscard]] bool can_multiply(Isa isa, ComputeDtype dtype) noexcept;

// The unit that multiplies bfloat16; the results are bit-identical (math/kernels_table.h). The tile
// unit takes half the time of dense float32 products, or less. Pairs (VDPBF16PS) are for AMD CPUs.
// Rounded operands as floats, for CPUs with neither, take at least one and a half times as long.
enum class Bf16Multiplier : std::uint8_t { kRoundedFloats, kPairs, kTileUnit };
// The fastest that the CPU has, if `isa` is AVX-512 or the default. The first call requests the
// tile unit from Linux. REQUIRES: can_multiply(isa, kBf16).
[[nodiscard]] Bf16Multiplier bf16_multiplier(Isa isa) noexcept;
// The text that follows "products of bfloat16 are made".
[[nodiscard]] std::string_view bf16_multiplier_text(Bf16Multiplier multiplier) noexcept;

struct Kernels;  // see kernels_table.h; opaque to the other folders
// REQUIRES: isa is in supported_isas().
[[nodiscard]] const Kernels& kernels(Isa isa) noexcept;

}  // namespace disttf::math
