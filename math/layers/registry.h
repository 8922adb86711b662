// The types of layers for models.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "math/layers/layer_type.h"

namespace disttf::math {

[[nodiscard]] std::span<const LayerType* const> layer_types() noexcept;
[[nodiscard]] const LayerType* find_layer_type(std::string_view name) noexcept;  // or null

// Throws std::invalid_argument with one sentence: an unknown type, a field, a shape.
[[nodiscard]] std::unique_ptr<const Layer> make_layer(const LayerSpec& spec, const Shape& input);

// The layer that performs this operation in inference, without a name; nullopt: none does.
[[nodiscard]] std::optional<LayerSpec> layer_that_does(const LayerOperation& operation);

}  // namespace disttf::math
