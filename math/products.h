// The matrix products of one training step and nothing else: the floor that a benchmark holds
// Model::gradient against. Same shapes, same order; no gather, bias, relu, softmax. A convolution
// counts as the product of the matrix that has a row for each position of its output. The batch is
// floats, few of them 0: where a Model multiplies pixels, to make numbers of them is not in the
// floor, nor is that it passes over those that are 0.
#pragma once

#include <cstddef>
#include <memory>

#include "math/kernels.h"
#include "math/model.h"

namespace disttf::math {

// Not thread-safe. All memory is taken in the constructor.
class StepProducts {
 public:
  // REQUIRES: batch > 0; isa is in supported_isas(); can_multiply(isa, dtype). Throws as
  // validate(spec) does.
  StepProducts(const ModelSpec& spec, std::size_t batch, Isa isa,
               ComputeDtype dtype = ComputeDtype::kF32);
  ~StepProducts();
  StepProducts(const StepProducts&) = delete;
  StepProducts& operator=(const StepProducts&) = delete;

  // The products of one forward and one backward pass over a batch of made-up numbers.
  void run() noexcept;
  // Floating-point operations in one run(): two per multiply-add.
  [[nodiscard]] double operations() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace disttf::math
