// A type of layer: a row of registry.cc. To add one, write a file pair like dense.{h,cc} and its
// row.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "math/layers/layer.h"
#include "math/layers/layer_fields.h"

namespace disttf::math {

struct LayerType {
  std::string_view name;   // "conv2d": its name in model files
  std::string_view about;  // for the reference of model files
  std::span<const LayerField> fields;
  // Makes a layer whose input has this shape. Throws std::invalid_argument with one sentence when
  // the shapes do not fit.
  std::unique_ptr<const Layer> (*make)(const LayerFields& fields, const Shape& input);
  // The fields with which a layer of this type performs the operation in inference; nullopt: it
  // cannot.
  std::optional<LayerValues> (*fields_for)(const LayerOperation& operation) = nullptr;
};

}  // namespace disttf::math
