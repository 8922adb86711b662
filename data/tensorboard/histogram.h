// Histograms for TensorBoard: the number of values in each of several intervals of equal width.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace disttf::data {

// The count of values in [left, right); the last bucket includes its right end.
struct HistogramBucket {
  double left = 0;
  double right = 0;
  double count = 0;
};

// The same number as TensorBoard's own writers use.
inline constexpr std::size_t kHistogramBuckets = 30;

// Distributes the finite values over kHistogramBuckets, from the least to the greatest. If all are
// equal, the last bucket holds them and every bucket has zero width. Returns no buckets if there
// are no finite values.
[[nodiscard]] std::vector<HistogramBucket> histogram(std::span<const float> values);

}  // namespace disttf::data
