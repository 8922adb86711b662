// Only the matrix products of one training step: the lower bound against which a benchmark compares
// Model::gradient. Same shapes, same order; no gather, bias, relu, softmax. A convolution counts as
// the product of the matrix with a row for each position of its output. The batch consists of
// floats, few of them 0: where a Model multiplies pixels, the conversion to floats is not in the
// bound, nor is the gain from skipping zeros.
#pragma once

#include <cstddef>
#include <memory>

#include "math/kernels.h"
#include "math/model.h"

namespace disttf::bench {

// Not thread-safe. Allocates all memory in the constructor.
class StepProducts {
 public:
  // REQUIRES: batch > 0; isa is in supported_isas(); can_multiply(isa, dtype). Throws as
  // validate(spec) does.
  StepProducts(const math::ModelSpec& spec, std::size_t batch, math::Isa isa,
               math::ComputeDtype dtype = math::ComputeDtype::kF32);
  ~StepProducts();
  StepProducts(const StepProducts&) = delete;
  StepProducts& operator=(const StepProducts&) = delete;

  // Computes the products of one forward and one backward pass over a batch of made-up numbers.
  void run() noexcept;
  // Floating-point operations in one run(): two per multiply-add.
  [[nodiscard]] double operations() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace disttf::bench
