// The types of layers that a model can be made of.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "math/layers/layer_type.h"

namespace disttf::math {

[[nodiscard]] std::span<const LayerType* const> layer_types() noexcept;
[[nodiscard]] const LayerType* find_layer_type(std::string_view name) noexcept;  // or null

// Throws std::invalid_argument with one sentence: no such type, a field, a shape.
[[nodiscard]] std::unique_ptr<const Layer> make_layer(const LayerSpec& spec, const Shape& input);

// The layer that does this when a model answers, without a name; nullopt: none does.
[[nodiscard]] std::optional<LayerSpec> layer_that_does(const LayerOperation& operation);

}  // namespace disttf::math
