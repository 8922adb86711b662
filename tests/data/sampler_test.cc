#include "data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "math/random.h"

namespace disttf::data {
namespace {

using Rows = std::vector<std::uint32_t>;

constexpr std::uint32_t kPurpose = static_cast<std::uint32_t>(math::Purpose::kPermutation);

SamplerOptions options(std::uint32_t rows, std::size_t batch_size, std::size_t trainers) {
  return {.seed = 42,
          .purpose = kPurpose,
          .rows = rows,
          .batch_size = batch_size,
          .trainers = trainers,
          .random_bits = &math::random_bits};
}

Rows draw(Sampler& sampler, std::size_t batch_size, std::uint64_t step, std::size_t trainer) {
  Rows rows(batch_size, 0xFFFFFFFF);
  sampler.batch(step, trainer, rows);
  return rows;
}

Rows counted(std::uint32_t rows) {
  Rows all(rows);
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

Rows sorted(Rows rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

// Returns the first `steps` steps of all trainers, one after the other.
Rows line(SamplerOptions made, std::uint64_t steps) {
  Sampler sampler(made);
  Rows all;
  for (std::uint64_t step = 0; step < steps; ++step) {
    for (std::size_t trainer = 0; trainer < made.trainers; ++trainer) {
      const Rows rows = draw(sampler, made.batch_size, step, trainer);
      all.insert(all.end(), rows.begin(), rows.end());
    }
  }
  return all;
}

TEST(Permute, KeepsEveryRowOnce) {
  Rows rows(1000);
  permute(rows, 1, kPurpose, 0, &math::random_bits);
  EXPECT_NE(rows, counted(1000));
  EXPECT_EQ(sorted(rows), counted(1000));
}

TEST(Permute, TakesNoneAndOneRow) {
  Rows none;
  permute(none, 1, kPurpose, 0, &math::random_bits);
  Rows one(1, 7);
  permute(one, 1, kPurpose, 0, &math::random_bits);
  EXPECT_EQ(one, Rows{0});
}

TEST(Permute, DiffersBySeedPurposeAndStream) {
  Rows base(100);
  Rows other(100);
  permute(base, 1, 2, 3, &math::random_bits);
  permute(other, 9, 2, 3, &math::random_bits);
  EXPECT_NE(base, other);
  permute(other, 1, 9, 3, &math::random_bits);
  EXPECT_NE(base, other);
  permute(other, 1, 2, 9, &math::random_bits);
  EXPECT_NE(base, other);
}

TEST(Permute, PutsEveryRowEverywhereEquallyOften) {
  // 6000 permutations of 6 rows: each row is in each position 1000 times, with a standard deviation
  // of 29. A deviation of six times that never happens by chance, and a biased generator exceeds it
  // by far.
  std::vector<Rows> counts(6, Rows(6));
  Rows rows(6);
  for (std::uint64_t stream = 0; stream < 6000; ++stream) {
    permute(rows, 1, kPurpose, stream, &math::random_bits);
    for (std::size_t place = 0; place < 6; ++place) ++counts[place][rows[place]];
  }
  for (const Rows& place : counts) {
    for (const std::uint32_t count : place) EXPECT_NEAR(count, 1000, 174);
  }
}

TEST(Sampler, TakesEveryRowOnceAnEpoch) {
  const Rows rows = line(options(120, 10, 3), 4);
  EXPECT_EQ(sorted(rows), counted(120));
}

TEST(Sampler, ShufflesEachEpochAnew) {
  const Rows rows = line(options(120, 10, 3), 8);
  const Rows first(rows.begin(), rows.begin() + 120);
  const Rows second(rows.begin() + 120, rows.end());
  EXPECT_EQ(sorted(second), counted(120));
  EXPECT_NE(first, second);
}

TEST(Sampler, TheGlobalBatchDoesNotDependOnTheNumberOfTrainers) {
  const Rows one = line(options(100, 60, 1), 7);
  EXPECT_EQ(line(options(100, 30, 2), 7), one);
  EXPECT_EQ(line(options(100, 20, 3), 7), one);
}

TEST(Sampler, AStepStraddlesTwoEpochs) {
  // Global batch 40 of 100 rows: step 2 takes the last 20 rows of epoch 0 and the first 20 of epoch
  // 1.
  const Rows rows = line(options(100, 20, 2), 5);
  EXPECT_EQ(sorted(Rows(rows.begin(), rows.begin() + 100)), counted(100));
  EXPECT_EQ(sorted(Rows(rows.begin() + 100, rows.end())), counted(100));
}

TEST(Sampler, OneSliceStraddlesTwoEpochs) {
  const Rows rows = line(options(100, 64, 1), 3);
  Sampler sampler(options(100, 64, 1));
  EXPECT_EQ(draw(sampler, 64, 1, 0), Rows(rows.begin() + 64, rows.begin() + 128));
  EXPECT_EQ(sorted(Rows(rows.begin(), rows.begin() + 100)), counted(100));
}

TEST(Sampler, ABatchMayHoldSeveralEpochs) {
  Sampler sampler(options(10, 35, 1));
  const Rows rows = draw(sampler, 35, 0, 0);
  for (std::ptrdiff_t epoch = 0; epoch < 3; ++epoch) {
    const auto begin = rows.begin() + 10 * epoch;
    EXPECT_EQ(sorted(Rows(begin, begin + 10)), counted(10)) << "epoch " << epoch;
  }
}

TEST(Sampler, ARestartedTrainerDrawsWhatTheLostOneWould) {
  const SamplerOptions made = options(100, 16, 3);
  Sampler lived(made);
  for (std::uint64_t step = 0; step < 20; ++step) draw(lived, 16, step, 1);
  Sampler restarted(made);
  EXPECT_EQ(draw(restarted, 16, 20, 1), draw(lived, 16, 20, 1));
}

TEST(Sampler, StepsMayBeAskedForInAnyOrder) {
  const SamplerOptions made = options(100, 30, 1);
  const Rows rows = line(made, 20);
  Sampler sampler(made);
  for (const std::ptrdiff_t step : {19, 0, 7, 7, 3, 18}) {
    const auto begin = rows.begin() + 30 * step;
    EXPECT_EQ(draw(sampler, 30, static_cast<std::uint64_t>(step), 0), Rows(begin, begin + 30))
        << "step " << step;
  }
}

TEST(Sampler, WorksAtStepsFarBeyondThirtyTwoBits) {
  Sampler sampler(options(100, 100, 1));
  EXPECT_EQ(sorted(draw(sampler, 100, std::uint64_t{1} << 40U, 0)), counted(100));
}

TEST(Sampler, ThePermutationIsPinned) {
  // The result of a run depends on these values: a change breaks every run that resumes from a
  // checkpoint.
  Sampler sampler(options(10, 10, 1));
  EXPECT_EQ(draw(sampler, 10, 0, 0), (Rows{7, 9, 6, 1, 3, 8, 0, 5, 4, 2}));
}

TEST(Sampler, RefusesSizesOfZero) {
  EXPECT_THROW(Sampler(options(0, 1, 1)), std::invalid_argument);
  EXPECT_THROW(Sampler(options(1, 0, 1)), std::invalid_argument);
  EXPECT_THROW(Sampler(options(1, 1, 0)), std::invalid_argument);
}

TEST(Sampler, RefusesAGlobalBatchBeyondSixtyFourBits) {
  EXPECT_THROW(Sampler(options(1, std::size_t{1} << 40U, std::size_t{1} << 30U)),
               std::invalid_argument);
}

}  // namespace
}  // namespace disttf::data
