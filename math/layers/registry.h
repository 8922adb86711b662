// The types of layers for models.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "math/layers/layer.h"
#include "math/layers/layer_spec.h"

namespace disttf::math {

// A type of layer: a row of registry.cc. To add one, write a file pair like dense.{h,cc} and its
// row.
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

[[nodiscard]] std::span<const LayerType* const> layer_types() noexcept;
[[nodiscard]] const LayerType* find_layer_type(std::string_view name) noexcept;  // or null

// Throws std::invalid_argument with one sentence: an unknown type, a field, a shape.
[[nodiscard]] std::unique_ptr<const Layer> make_layer(const LayerSpec& spec, const Shape& input);

// The layer that performs this operation in inference, without a name; nullopt: none does.
[[nodiscard]] std::optional<LayerSpec> layer_that_does(const LayerOperation& operation);

}  // namespace disttf::math
