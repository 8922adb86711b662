// Counter-based randomness: every number is a pure function of (seed, purpose, stream, index).
//
// Nothing is stateful, so a restarted task needs no saved generator, and any worker can draw
// the number that any other would have drawn. The generator is Philox4x32-10: J. Salmon et al.,
// "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11; tests/math/random_test.cc pins its
// published test vectors.
//
// Pure functions; callable from any thread.
#pragma once

#include <array>
#include <cstdint>

namespace disttf::math {

// What a number is drawn for. Part of the key, so that no two uses share a sequence. The values
// are part of what a run's bits depend on: never renumber, only append.
enum class Purpose : std::uint32_t {
  kInitialValues = 1,
  kPermutation = 2,
  kDigits = 3,
  kDropout = 4,
  kInjectedDelay = 5,
};

// One Philox4x32-10 block: 128 random bits for (counter, key).
[[nodiscard]] std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) noexcept;

// 64 random bits. `stream` is the epoch, step or variable; `index` the row or element in it.
[[nodiscard]] std::uint64_t random_bits(std::uint64_t seed, std::uint32_t purpose,
                                        std::uint64_t stream, std::uint64_t index) noexcept;

}  // namespace disttf::math
