// A model as a list of fully connected layers, first to last: what model.cc computes with and
// products.cc takes its shapes from. Internal to math/.
#pragma once

#include <cstddef>
#include <vector>

#include "math/model.h"

namespace disttf::math {

// out [batch, units] = in [batch, inputs] * weights [inputs, units] + bias [units]
struct LayerShape {
  std::size_t inputs = 0;
  std::size_t units = 0;
};

// The hidden layers, then the one that gives the logits. Throws as validate(spec) does.
[[nodiscard]] std::vector<LayerShape> layer_shapes(const ModelSpec& spec);

}  // namespace disttf::math
