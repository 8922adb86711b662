// Top-k with error feedback: of each gradient a trainer sends the few components that are largest,
// and keeps the rest, the residual, to be added to its next gradient. Nothing is lost that way; it
// comes later.
//
//   sum = gradient + residual;  sent = the k components of sum that are largest in magnitude, the
//   others 0;  residual = sum - sent
//
// Which ones they are is a function of the sum's bits: of equal magnitudes those of lower index are
// sent, a NaN is larger than any number, a component that is 0 is never sent. The whole vector is
// one: how it is cut over ps changes nothing. Sent values may be rounded to bfloat16 (math/bf16.h);
// what the rounding takes off stays in the residual.
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
  // The residual begins as 0. Throws std::bad_alloc.
  TopK(std::size_t size, std::size_t count, bool bf16);

  // In: a gradient. Out, in its place: what is sent. Nothing is allocated.
  // REQUIRES: `size` floats.
  void select(std::span<float> gradient);
  // What was sent of the vector from float `begin` on was not used: it is kept for later, too.
  void take_back(std::size_t begin, std::span<const float> sent);
  // Forgets the residual.
  void reset();

 private:
  // Of what is sent: every component above `magnitude`, and the first `ties` of that magnitude.
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
