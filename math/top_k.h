// Top-k sparsification with error feedback: a trainer sends the largest components of each gradient
// and keeps the rest, the residual, which is added to its next gradient. Nothing is lost, only
// delayed.
//
//   sum = gradient + residual;  sent = the k components of sum that are largest in magnitude, the
//   others 0;  residual = sum - sent
//
// The selection is a function of the sum's bits: of equal magnitudes those with the lower index are
// sent, a NaN is larger than any number, a component that is 0 is never sent. It covers the whole
// vector, so the division among ps has no effect. Sent values may be rounded to bfloat16
// (math/rounding.h); the rounding error stays in the residual.
//
// A component that is not finite is sent, and stays in the residual as a NaN until reset(): each
// later gradient shows that the run has diverged. (A ps rejects the first of them, which ends the
// trainer.)
//
// Not thread-safe: the computing thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "math/aligned.h"

namespace disttf::math {

class TopK {
 public:
  // `size`: floats of the vector. `count`: k, at least 1. `bf16`: sent values are rounded to it.
  // The residual is initially 0. Throws std::bad_alloc.
  TopK(std::size_t size, std::size_t count, bool bf16);

  // Replaces a gradient by what is sent. Allocates nothing. REQUIRES: `size` floats.
  void select(std::span<float> gradient);
  // Adds what was sent of the vector from float `begin` on, but not used, to the residual.
  void take_back(std::size_t begin, std::span<const float> sent);
  // Clears the residual.
  void reset();

 private:
  // What is sent: every component above `magnitude`, and the first `ties` of that magnitude.
  struct Threshold {
    std::uint32_t magnitude = 0;
    std::size_t ties = 0;
  };
  [[nodiscard]] Threshold threshold() const;

  std::size_t count_;
  bool bf16_;
  AlignedVector residual_;
};

}  // namespace disttf::math
