#include "math/layers/registry.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "math/layers/activations.h"
#include "math/layers/batch_norm.h"
#include "math/layers/convolution.h"
#include "math/layers/dense.h"
#include "math/layers/dropout.h"
#include "math/layers/flatten.h"
#include "math/layers/pooling.h"

namespace disttf::math {
namespace {

const std::array kTypes = {&dense(),   &convolution(), &max_pooling(), &average_pooling(),
                           &relu(),    &tanh(),        &sigmoid(),     &batch_norm(),
                           &dropout(), &flatten()};

}  // namespace

std::span<const LayerType* const> layer_types() noexcept { return kTypes; }

const LayerType* find_layer_type(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kTypes, name, &LayerType::name);
  return found == kTypes.end() ? nullptr : *found;
}

std::unique_ptr<const Layer> make_layer(const LayerSpec& spec, const Shape& input) {
  const LayerType* const type = find_layer_type(spec.type);
  if (type == nullptr) {
    std::string names;
    for (const LayerType* each : kTypes) {
      names += (names.empty() ? "" : ", ") + std::string(each->name);
    }
    throw std::invalid_argument("type: \"" + spec.type + "\" is not one of " + names);
  }
  return type->make(LayerFields(spec, type->fields), input);
}

std::optional<LayerSpec> layer_that_does(const LayerOperation& operation) {
  for (const LayerType* type : kTypes) {
    // An operation belongs to one type at most, so the order of the list does not matter.
    if (std::optional<LayerValues> fields = type->fields_for(operation)) {
      return LayerSpec{.type = std::string(type->name), .name = {}, .fields = std::move(*fields)};
    }
  }
  return std::nullopt;
}

}  // namespace disttf::math
