// Determines which rows of the training set a step uses.
//
// The epochs form one long sequence, each a fresh permutation of [0, rows). Step t of a run with a
// global batch of G rows takes positions [t*G, (t+1)*G) of that sequence; trainer w of N takes the
// w-th slice of batch_size of them. A step may span two epochs, or contain several. The only state
// is a cache: the result depends only on (seed, step, trainer), so a restarted trainer draws the
// same rows as the lost one.
//
// Not thread-safe: one sampler per computing thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace disttf::data {

// Fills `bits` with 64 random bits each for (seed, purpose, stream, index), with indices from
// `first` on: math::random_bits. It is a parameter because data/ and math/ do not include each
// other.
using RandomBits = void (*)(std::uint64_t seed, std::uint32_t purpose, std::uint64_t stream,
                            std::uint64_t first, std::span<std::uint64_t> bits) noexcept;

// Writes a random permutation of [0, rows.size()) to `rows`: Fisher-Yates, one 64-bit draw per row,
// the k-th row using index k of `stream`. The high half of a 64x64-bit product maps a draw to [0,
// n), with a bias below n / 2^64.
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
  // 0). Steps may be requested in any order; ascending steps generate each epoch once. REQUIRES:
  // step * batch_size * trainers fits 64 bits.
  void batch(std::uint64_t step, std::size_t trainer, std::span<std::uint32_t> rows);

 private:
  struct Epoch {
    std::uint64_t number = 0;
    std::vector<std::uint32_t> rows;  // empty: not cached
  };
  const std::vector<std::uint32_t>& permutation(std::uint64_t epoch);

  SamplerOptions options_;
  // Even epochs in one, odd ones in the other, so a step that spans two epochs finds both.
  std::array<Epoch, 2> cached_;
};

}  // namespace disttf::data
