#include "math/model_spec.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "math/layers/registry.h"
#include "math/names.h"
#include "math/program_layout.h"

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

void refuse_program(const ModelSpec& spec) {
  if (spec.is_program()) {
    throw std::invalid_argument("the model is a user's program, which has no layers");
  }
}

// ---- The layers of the models that have names ----

LayerSpec dense_layer(std::string name, std::size_t units, const char* initial) {
  return {.type = "dense",
          .name = std::move(name),
          .fields = {{"units", static_cast<double>(units)}, {"initial", initial}}};
}

LayerSpec convolution_layer(std::string name, std::size_t channels, std::size_t kernel) {
  return {.type = "conv2d",
          .name = std::move(name),
          .fields = {{"channels", static_cast<double>(channels)},
                     {"kernel", static_cast<double>(kernel)}}};
}

LayerSpec plain_layer(const char* type) { return {.type = type, .name = {}, .fields = {}}; }

LayerSpec pooling_layer(std::size_t size) {
  return {.type = "max_pool", .name = {}, .fields = {{"size", static_cast<double>(size)}}};
}

LayerSpec dropout_layer(double rate) {
  return {.type = "dropout", .name = {}, .fields = {{"rate", rate}}};
}

std::vector<LayerSpec> softmax_layers(const ModelSpec& spec) {
  return {dense_layer("sm", spec.classes, "zeros")};
}

std::vector<LayerSpec> mlp_layers(const ModelSpec& spec) {
  std::vector<LayerSpec> layers;
  for (std::size_t i = 0; i < spec.hidden.size(); ++i) {
    // mnist_replica.py has one hidden layer, "hid"; the others are numbered.
    const std::string name = i == 0 ? "hid" : "hid" + std::to_string(i + 1);
    layers.push_back(dense_layer(name, spec.hidden[i], "truncated_normal"));
    layers.push_back(plain_layer("relu"));
  }
  layers.push_back(dense_layer("sm", spec.classes, "truncated_normal"));
  return layers;
}

std::vector<LayerSpec> lenet_layers(const ModelSpec& spec) {
  return {convolution_layer("conv1", 32, 5),
          plain_layer("relu"),
          pooling_layer(2),
          convolution_layer("conv2", 64, 5),
          plain_layer("relu"),
          pooling_layer(2),
          plain_layer("flatten"),
          dense_layer("fc1", 1024, "truncated_normal"),
          plain_layer("relu"),
          dropout_layer(0.5),
          dense_layer("sm", spec.classes, "truncated_normal")};
}

std::vector<LayerSpec> cnn_layers(const ModelSpec& spec) {
  return {convolution_layer("conv1", 16, 3),
          plain_layer("relu"),
          convolution_layer("conv2", 16, 3),
          plain_layer("relu"),
          pooling_layer(2),
          convolution_layer("conv3", 32, 3),
          plain_layer("relu"),
          convolution_layer("conv4", 32, 3),
          plain_layer("relu"),
          pooling_layer(2),
          plain_layer("flatten"),
          dropout_layer(0.4),
          dense_layer("sm", spec.classes, "truncated_normal")};
}

}  // namespace

std::string_view model_name(ModelKind kind) noexcept { return name_of(kModelNames, kind); }

std::optional<ModelKind> model_from_name(std::string_view name) noexcept {
  return value_of<ModelKind>(kModelNames, name);
}

std::string describe(const ModelSpec& spec) {
  if (spec.is_program()) {
    const std::size_t count = spec.variables.size();
    return "program of " + std::to_string(count) + (count == 1 ? " variable" : " variables");
  }
  return spec.layers.empty() ? std::string(model_name(spec.kind))
                             : "model of " + std::to_string(spec.layers.size()) + " layers";
}

std::vector<LayerSpec> layers_of(const ModelSpec& spec) {
  refuse_program(spec);
  if (!spec.layers.empty()) {
    return spec.layers;
  }
  // By ModelKind.
  constexpr std::array kLayers = {&softmax_layers, &mlp_layers, &lenet_layers, &cnn_layers};
  static_assert(kLayers.size() == kModelNames.size());
  return kLayers.at(static_cast<std::size_t>(spec.kind))(spec);
}

bool is_convolutional(const ModelSpec& spec) {
  return !spec.is_program() && std::ranges::any_of(layers_of(spec), [](const LayerSpec& each) {
    return each.type == "conv2d";
  });
}

namespace {

// The prefix of the layer's variables in checkpoints, in the published configuration and in
// messages.
void check_name(const std::string& name, std::span<const PlacedLayer> before) {
  constexpr std::size_t kLongest = 32;
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (name.empty() || name.size() > kLongest || !std::ranges::all_of(name, is_allowed)) {
    throw std::invalid_argument("name: \"" + name.substr(0, kLongest) +
                                "\" is not 1 to 32 of a-z, A-Z, 0-9 and _");
  }
  // Two layers of one name would give two variables of one name in a checkpoint.
  if (std::ranges::find(before, name, &PlacedLayer::name) != before.end()) {
    throw std::invalid_argument("name: \"" + name + "\" is another layer's already");
  }
}

}  // namespace

std::vector<PlacedLayer> make_layers(const ModelSpec& spec) {
  // First: a program has no sizes of images to check, either.
  refuse_program(spec);
  require_between("height", spec.input.height, 1, kMaxInputs);
  require_between("width", spec.input.width, 1, kMaxInputs);
  require_between("channels", spec.input.channels, 1, kMaxInputs);
  require_between("inputs", spec.input.size(), 1, kMaxInputs);
  // Numeric targets have exactly one output.
  if (loss_type(spec.loss).of_numbers) {
    require_between("classes", spec.classes, 1, 1);
    if (spec.label_smoothing != 0) {
      throw std::invalid_argument("label_smoothing: it is not allowed with the loss " +
                                  std::string(loss_type(spec.loss).name));
    }
  } else {
    require_between("classes", spec.classes, 2, kMaxClasses);
  }
  if (spec.layers.empty() && spec.kind == ModelKind::kMlp) {
    require_between("number of hidden layers", spec.hidden.size(), 1, kMaxHiddenLayers);
    for (const std::size_t units : spec.hidden) {
      require_between("hidden_units", units, 1, kMaxUnits);
    }
  }
  std::vector<PlacedLayer> placed;
  std::map<std::string, std::size_t> counts;  // of each type, so far
  Shape shape = spec.input;
  const std::vector<LayerSpec> layers = layers_of(spec);
  // Every count is limited before anything of that size is allocated, because a specification may
  // come from a file.
  require_between("number of layers", layers.size(), 1, kMaxLayers);
  for (const LayerSpec& each : layers) {
    // Counted for named layers as well, so a name that is derived from the number stays the same
    // when another layer gets a name.
    const std::size_t number = ++counts[each.type];
    // The number and type of the layer are added to errors, because several layers may have the
    // same fields.
    try {
      std::unique_ptr<const Layer> layer = make_layer(each, shape);
      std::string name = each.name.empty() ? each.type + std::to_string(number) : each.name;
      check_name(name, placed);
      placed.push_back({.name = std::move(name), .layer = std::move(layer)});
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("layer " + std::to_string(placed.size() + 1) + " (" + each.type +
                                  "): " + error.what());
    }
    shape = placed.back().layer->output();
  }
  // Each class needs an output, and the number of outputs is known only now.
  if (shape.size() != spec.classes) {
    throw std::invalid_argument("layer " + std::to_string(placed.size()) + " gives " +
                                to_string(shape) + ", and there are " +
                                std::to_string(spec.classes) +
                                (spec.classes == 1 ? " numbers to predict" : " classes"));
  }
  // Without parameters there is nothing to train; and a plan of layers that compute nothing, such
  // as flatten alone, would have no stage.
  const auto has_parameters = [](const PlacedLayer& each) {
    return !each.layer->variables().empty();
  };
  if (std::ranges::none_of(placed, has_parameters)) {
    throw std::invalid_argument("layers: none of them has parameters, and at least one must");
  }
  return placed;
}

void validate(const ModelSpec& spec) {
  if (spec.is_program()) {
    validate_variables(spec.variables);
  } else {
    // Building the layers is the check: a second list of rules could differ from it.
    static_cast<void>(make_layers(spec));
  }
}

ParameterLayout layout_of(const ModelSpec& spec) {
  ParameterLayout layout;
  if (spec.is_program()) {
    validate_variables(spec.variables);
    for (const Variable& variable : spec.variables) {
      layout.add(variable);
    }
    return layout;
  }
  for (const PlacedLayer& placed : make_layers(spec)) {
    for (const LayerVariable& variable : placed.layer->variables()) {
      layout.add(placed.name + "_" + std::string(variable.suffix), variable.shape, variable.decays,
                 variable.momentum);
    }
  }
  return layout;
}

std::size_t least_rows(const ModelSpec& spec) {
  if (spec.is_program()) {
    return 1;
  }
  std::size_t least = 1;
  for (const PlacedLayer& placed : make_layers(spec)) {
    least = std::max(least, placed.layer->least_rows());
  }
  return least;
}

std::size_t activation_floats(const ModelSpec& spec) {
  if (spec.is_program()) {
    return 0;
  }
  std::size_t floats = spec.input.size();
  // Mirrors add_stages() in model_plan.cc, which allocates the memory that this function predicts.
  bool is_needed = false;  // the output of the previous layer
  for (const PlacedLayer& placed : make_layers(spec)) {
    const Layer& layer = *placed.layer;
    if (!layer.computes()) {
      continue;
    }
    // In-place layers reuse the output of the previous layer unless that is needed for its
    // gradient.
    const std::size_t places = layer.in_place() ? (is_needed ? 1 : 0) : 2;
    floats += layer.kept_floats() + places * layer.output().size();
    is_needed = layer.needs_output();
  }
  return floats;
}

}  // namespace disttf::math
