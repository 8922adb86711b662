#include "data/sampler.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace disttf::data {
namespace {

// 4 KiB, a multiple of the number that math::random_bits generates at once.
constexpr std::size_t kDrawsAtOnce = 512;

// Returns the high 64 bits of the 128-bit product, which maps 64 random bits to [0, bound).
std::uint64_t multiply_high(std::uint64_t bits, std::uint64_t bound) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{bits} * bound) >> 64U);
}

}  // namespace

void permute(std::span<std::uint32_t> rows, std::uint64_t seed, std::uint32_t purpose,
             std::uint64_t stream, RandomBits random_bits) {
  std::iota(rows.begin(), rows.end(), std::uint32_t{0});
  std::array<std::uint64_t, kDrawsAtOnce> bits{};
  // Fisher and Yates, from the last row down. Row i uses the draw with index i, so the blocks of
  // draws change nothing.
  for (std::size_t end = rows.size(); end > 1;) {
    const std::size_t begin = end > kDrawsAtOnce ? end - kDrawsAtOnce : 0;
    random_bits(seed, purpose, stream, begin, std::span(bits).first(end - begin));
    for (; end > std::max(begin, std::size_t{1}); --end) {
      std::swap(rows[end - 1], rows[multiply_high(bits[end - 1 - begin], end)]);
    }
  }
}

Sampler::Sampler(SamplerOptions options) : options_(options) {
  assert(options_.random_bits != nullptr);
  if (options_.rows == 0) throw std::invalid_argument("the training set has no rows");
  if (options_.batch_size == 0)
    throw std::invalid_argument("batch_size is 0; at least 1 is needed");
  if (options_.trainers == 0) throw std::invalid_argument("trainers is 0; at least 1 is needed");
  if (options_.batch_size > std::numeric_limits<std::uint64_t>::max() / options_.trainers) {
    throw std::invalid_argument("batch_size times trainers does not fit 64 bits");
  }
}

void Sampler::batch(std::uint64_t step, std::size_t trainer, std::span<std::uint32_t> rows) {
  assert(trainer < options_.trainers && rows.size() == options_.batch_size);
  const std::uint64_t global_batch = options_.batch_size * options_.trainers;
  // A batch is a function of step and trainer alone, so a trainer that restarts computes the same
  // one.
  std::uint64_t position = step * global_batch + trainer * options_.batch_size;
  for (std::size_t filled = 0; filled < rows.size();) {
    const std::vector<std::uint32_t>& epoch = permutation(position / options_.rows);
    const std::size_t offset = position % options_.rows;
    // A batch can reach over the end of an epoch, even over several of a small set.
    const std::size_t count = std::min(rows.size() - filled, epoch.size() - offset);
    std::copy_n(epoch.data() + offset, count, rows.data() + filled);
    filled += count;
    position += count;
  }
}

const std::vector<std::uint32_t>& Sampler::permutation(std::uint64_t epoch) {
  // Two epochs, because batches around the end of one alternate between it and the next.
  Epoch& slot = cached_[epoch % 2];
  if (slot.rows.empty() || slot.number != epoch) {
    slot.rows.resize(options_.rows);
    slot.number = epoch;
    permute(slot.rows, options_.seed, options_.purpose, epoch, options_.random_bits);
  }
  return slot.rows;
}

}  // namespace disttf::data
