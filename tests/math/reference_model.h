// The models again, in double and plain loops straight from the formulas, sharing no code with
// math/ but the layout: what Model is held against.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "math/model.h"

namespace disttf::math {

class ReferenceModel {
 public:
  explicit ReferenceModel(const ModelSpec& spec) : layout_(layout_of(spec)) {}

  // Mean cross-entropy of `rows` of `set`. REQUIRES: parameters.size() == layout's size.
  [[nodiscard]] double loss(std::span<const double> parameters, const ImageSet& set,
                            std::span<const std::uint32_t> rows) const;
  // Its gradient by backpropagation, one image at a time.
  [[nodiscard]] std::vector<double> gradient(std::span<const double> parameters,
                                             const ImageSet& set,
                                             std::span<const std::uint32_t> rows) const;
  // Its gradient by central differences: (loss(p + h) - loss(p - h)) / 2h for every parameter.
  [[nodiscard]] std::vector<double> differences(std::span<const double> parameters,
                                                const ImageSet& set,
                                                std::span<const std::uint32_t> rows) const;

 private:
  // The values of every layer for one image: the pixels, each hidden layer after relu, the logits.
  [[nodiscard]] std::vector<std::vector<double>> forward(std::span<const double> parameters,
                                                         const ImageSet& set,
                                                         std::uint32_t row) const;
  ParameterLayout layout_;
};

}  // namespace disttf::math
