// What a ModelSpec says, before any arithmetic: names, limits, layers, layout. Apart from model.cc
// because a parameter server needs no more than this.
#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>

#include "math/layers.h"
#include "math/model.h"
#include "math/names.h"

namespace disttf::math {
namespace {

void require_between(std::string_view field, std::size_t value, std::size_t least,
                     std::size_t most) {
  if (value >= least && value <= most) {
    return;
  }
  std::ostringstream sentence;
  sentence << field << ": " << value << " is not allowed, it must be from " << least << " to "
           << most;
  throw std::invalid_argument(sentence.str());
}

// TensorFlow's names in mnist_replica.py; it has one hidden layer, the others are numbered.
std::string layer_name(std::size_t index, std::size_t count) {
  if (index + 1 == count) {
    return "sm";
  }
  return index == 0 ? "hid" : "hid" + std::to_string(index + 1);
}

}  // namespace

std::string_view model_name(ModelKind kind) noexcept { return name_of(kModelNames, kind); }

std::optional<ModelKind> model_from_name(std::string_view name) noexcept {
  return value_of<ModelKind>(kModelNames, name);
}

void validate(const ModelSpec& spec) {
  require_between("inputs", spec.inputs, 1, kMaxInputs);
  require_between("classes", spec.classes, 2, kMaxClasses);
  if (spec.kind == ModelKind::kMlp) {
    require_between("number of hidden layers", spec.hidden.size(), 1, kMaxHiddenLayers);
    for (const std::size_t units : spec.hidden) {
      require_between("hidden_units", units, 1, kMaxUnits);
    }
  }
}

std::vector<LayerShape> layer_shapes(const ModelSpec& spec) {
  validate(spec);
  std::vector<LayerShape> shapes;
  std::size_t inputs = spec.inputs;
  if (spec.kind == ModelKind::kMlp) {
    for (const std::size_t units : spec.hidden) {
      shapes.push_back({inputs, units});
      inputs = units;
    }
  }
  shapes.push_back({inputs, spec.classes});
  return shapes;
}

ParameterLayout layout_of(const ModelSpec& spec) {
  const std::vector<LayerShape> shapes = layer_shapes(spec);
  ParameterLayout layout;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::string name = layer_name(i, shapes.size());
    layout.add(name + "_w", {shapes[i].inputs, shapes[i].units});
    layout.add(name + "_b", {shapes[i].units});
  }
  return layout;
}

}  // namespace disttf::math
