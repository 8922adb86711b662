// Counter-based randomness: every number is a pure function of (seed, purpose, stream, index).
//
// There is no state, so a restarted task needs no saved generator, and any worker can draw the
// number that any other would have drawn. The generator is Philox4x32-10: J. Salmon et al.,
// "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11; tests/math/random_test.cc checks its
// published test vectors.
//
// The mapping of (seed, purpose, stream, index) to Philox's key and counter (32-bit words):
//
//   key[0], key[1]          seed, low word first
//   counter[0], counter[1]  index, low word first
//   counter[2]              stream, bits 0..31
//   counter[3]              stream, bits 32..47, below; purpose, 16 bits, above
//
// Different inputs are different (key, counter) pairs, and for one key Philox is a bijection of the
// counter: two draws may have equal 64 bits by chance, but never because their inputs collide.
//
// Pure functions; callable from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace disttf::math {

// What a number is drawn for. Part of the counter, so that no two uses share a sequence. Results of
// runs depend on the values: never renumber, only append.
enum class Purpose : std::uint32_t {
  kInitialValues = 1,
  kPermutation = 2,
  kDigits = 3,
  kDropout = 4,
  kInjectedDelay = 5,
  kFrameFault = 6,
  kProcessFault = 7,
  kAugmentation = 8,
  kHoldOut = 9,
  kProgram = 10,  // the seed of a batch of a user's program
};

// Upper bound of streams: 48 bits of the counter. Step numbers never reach it.
inline constexpr std::uint64_t kStreamLimit = std::uint64_t{1} << 48;
// Upper bound of purposes: 16 bits of the counter.
inline constexpr std::uint32_t kPurposeLimit = std::uint32_t{1} << 16;

// One Philox4x32-10 block: 128 random bits for (counter, key).
[[nodiscard]] std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) noexcept;

// 64 random bits: the first two words of the block, the first one low. `purpose` is a Purpose,
// passed as a number because net/ takes this function as a plain pointer, and data/ the one below.
// `stream` is the epoch, step or variable; `index` the row or element in it. REQUIRES: purpose <
// kPurposeLimit, stream < kStreamLimit.
[[nodiscard]] std::uint64_t random_bits(std::uint64_t seed, std::uint32_t purpose,
                                        std::uint64_t stream, std::uint64_t index) noexcept;
// The same for consecutive indices from `first` on, as many as `bits` holds. They are computed 64
// at a time: in a quarter of the time with AVX-512, in half of it with the generic set; slower for
// few.
void random_bits(std::uint64_t seed, std::uint32_t purpose, std::uint64_t stream,
                 std::uint64_t first, std::span<std::uint64_t> bits) noexcept;

// Initial values of weights.

// A draw from the standard normal distribution truncated at two standard deviations. A function of
// the arguments, bit-identical on every machine. REQUIRES: element < 2^40.
[[nodiscard]] double truncated_normal(std::uint64_t seed, std::uint64_t variable,
                                      std::uint64_t element) noexcept;

}  // namespace disttf::math
