// The arithmetic that is compiled once per instruction set and chosen at start.
//
// One portable file carries every set: the same source (kernels_impl.inc) is compiled per ISA
// with Eigen in a namespace of its own, so that no inline function of one set is ever linked
// into another (tests/math/kernels_symbols_test.cmake holds it to that). Matrix products differ
// between sets in the last bits, so the chief publishes which one a run uses; for one set they are
// the same bits on every machine that has it. Everything else is the same bits on every set.
//
// The tables are constant after start-up; functions are callable from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace disttf::math {

// generic: the target's baseline. neon: of aarch64, which always has it.
enum class Isa : std::uint8_t { kGeneric, kAvx2, kAvx512, kNeon };
inline constexpr std::array<std::string_view, 4> kIsaNames = {"generic", "avx2", "avx512", "neon"};

[[nodiscard]] std::string_view isa_name(Isa isa) noexcept;                       // "generic", ...
[[nodiscard]] std::optional<Isa> isa_from_name(std::string_view name) noexcept;  // its inverse
// The sets this file carries and this CPU can run, the fastest (the default) first.
[[nodiscard]] std::span<const Isa> supported_isas() noexcept;

// What the operands of matrix products are rounded to; sums are float32 (math/kernels_table.h).
enum class ComputeDtype : std::uint8_t { kF32, kBf16 };
inline constexpr std::array<std::string_view, 2> kComputeDtypeNames = {"f32", "bf16"};

[[nodiscard]] std::string_view compute_dtype_name(ComputeDtype dtype) noexcept;  // "f32", "bf16"
[[nodiscard]] std::optional<ComputeDtype> compute_dtype_from_name(std::string_view name) noexcept;
// Whether a set can multiply so: bfloat16 takes fused multiply-adds, which the generic set lacks.
[[nodiscard]] bool can_multiply(Isa isa, ComputeDtype dtype) noexcept;

// What makes products of bfloat16: always the same bits (math/kernels_table.h). The tile unit takes
// half as long as float32's that pass over nothing, or less; pairs, VDPBF16PS, are for AMD's CPUs;
// rounded operands as floats, where a CPU has neither, take one and a half times as long, or more.
enum class Bf16Multiplier : std::uint8_t { kRoundedFloats, kPairs, kTileUnit };
// The best that the CPU has, where `isa` is AVX-512, or the default. The first time, it asks Linux
// for the tile unit. REQUIRES: can_multiply(isa, kBf16).
[[nodiscard]] Bf16Multiplier bf16_multiplier(Isa isa) noexcept;
// What follows "products of bfloat16 are made".
[[nodiscard]] std::string_view bf16_multiplier_text(Bf16Multiplier multiplier) noexcept;

struct Kernels;  // see kernels_table.h; opaque to the other folders
// REQUIRES: isa is in supported_isas().
[[nodiscard]] const Kernels& kernels(Isa isa) noexcept;

}  // namespace disttf::math
