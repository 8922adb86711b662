// How numbers are spread, for TensorBoard: so many of them lie in each of some equally wide
// intervals.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace disttf::data {

// [left, right): so many values; the last one with its right end.
struct HistogramBucket {
  double left = 0;
  double right = 0;
  double count = 0;
};

// As many as TensorBoard's own writers have.
inline constexpr std::size_t kHistogramBuckets = 30;

// Of `values` those that are finite, in kHistogramBuckets from the least to the greatest. Where all
// are equal the last bucket has them, and each is as wide as nothing. None: no buckets.
[[nodiscard]] std::vector<HistogramBucket> histogram(std::span<const float> values);

}  // namespace disttf::data
