// Which rows of the training set a step takes.
//
// The epochs are laid end to end, each a fresh permutation of [0, rows). Step t of a run with a
// global batch of G rows takes positions [t*G, (t+1)*G) of that line; trainer w of N takes the
// w-th slice of batch_size of them. A step may straddle two epochs, or hold several. Nothing is
// stateful but a cache: the answer is a function of (seed, step, trainer) alone, so a restarted
// trainer draws what the lost one would have drawn.
//
// Not thread-safe: one sampler per computing thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace disttf::data {

// 64 random bits for (seed, purpose, stream, index), of the indices from `first` on, as many as
// `bits` holds: math::random_bits. Handed in, because data/ and math/ do not include each other.
using RandomBits = void (*)(std::uint64_t seed, std::uint32_t purpose, std::uint64_t stream,
                            std::uint64_t first, std::span<std::uint64_t> bits) noexcept;

// A random permutation of [0, rows.size()), written over `rows`: Fisher-Yates, one draw of 64 bits
// a row, the k-th row using index k of `stream`. Draws are mapped to [0, n) by the high half of a
// 64x64-bit product, whose bias is below n / 2^64.
void permute(std::span<std::uint32_t> rows, std::uint64_t seed, std::uint32_t purpose,
             std::uint64_t stream, RandomBits random_bits);

struct SamplerOptions {
  std::uint64_t seed = 0;
  std::uint32_t purpose = 0;   // math::Purpose::kPermutation
  std::uint32_t rows = 0;      // of the training set; > 0
  std::size_t batch_size = 0;  // rows per trainer and step; > 0
  std::size_t trainers = 0;    // > 0
  RandomBits random_bits = nullptr;
};

class Sampler {
 public:
  // Throws std::invalid_argument when a size is 0 or the global batch does not fit 64 bits.
  explicit Sampler(SamplerOptions options);

  // Fills `rows` (batch_size long) with the rows that `trainer` (< trainers) takes in `step` (from
  // 0). Steps may be asked for in any order; going through them in order makes each epoch once.
  // REQUIRES: step * batch_size * trainers fits 64 bits.
  void batch(std::uint64_t step, std::size_t trainer, std::span<std::uint32_t> rows);

 private:
  struct Epoch {
    std::uint64_t number = 0;
    std::vector<std::uint32_t> rows;  // empty: nothing cached here yet
  };
  const std::vector<std::uint32_t>& permutation(std::uint64_t epoch);

  SamplerOptions options_;
  // Even epochs in one, odd ones in the other: a step that straddles a border finds both.
  std::array<Epoch, 2> cached_;
};

}  // namespace disttf::data
