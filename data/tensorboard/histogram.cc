#include "data/tensorboard/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace disttf::data {

std::vector<HistogramBucket> histogram(std::span<const float> values) {
  double least = std::numeric_limits<double>::infinity();
  double greatest = -least;
  std::size_t finite = 0;
  for (const float value : values) {
    if (std::isfinite(value)) {
      least = std::min(least, static_cast<double>(value));
      greatest = std::max(greatest, static_cast<double>(value));
      ++finite;
    }
  }
  if (finite == 0) {
    return {};
  }
  std::vector<HistogramBucket> buckets(kHistogramBuckets);
  const double width = (greatest - least) / static_cast<double>(buckets.size());
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    buckets[i].left = least + width * static_cast<double>(i);
    buckets[i].right =
        // Exactly the largest value, which the sum can miss by a rounding error.
        i + 1 == buckets.size() ? greatest : least + width * static_cast<double>(i + 1);
  }
  // All values are equal, and the division below would be 0 / 0.
  if (width == 0) {
    buckets.back().count = static_cast<double>(finite);
    return buckets;
  }
  for (const float value : values) {
    if (std::isfinite(value)) {
      const double place = (static_cast<double>(value) - least) / width;
      // The largest value itself belongs to the last bucket.
      buckets[std::min(static_cast<std::size_t>(place), buckets.size() - 1)].count += 1;
    }
  }
  return buckets;
}

}  // namespace disttf::data
