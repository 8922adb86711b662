// Data sets of 100 images of 6 bytes. All pixels of an image have the image's number as their
// value; the classes are 0, 1, 2 in turn.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "data/dataset.h"

namespace disttf::data::test {

// Checks that each image occurs once, in training or validation, with its own label.
inline void expect_each_once(const Dataset& dataset) {
  std::vector<int> seen(100);
  for (const Split* split : {&dataset.train, &dataset.validation}) {
    ASSERT_EQ(split->images.size(), split->rows() * 6);
    for (std::size_t row = 0; row < split->rows(); ++row) {
      const std::uint8_t number = split->images[row * 6 + 5];
      ++seen.at(number);
      EXPECT_EQ(split->labels[row], number % 3);
    }
  }
  EXPECT_EQ(seen, std::vector<int>(100, 1));
}

}  // namespace disttf::data::test
