#include "roles/chief/shell/run_description.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "data/json/json_text.h"

namespace disttf::roles {
namespace {

constexpr const char* kTrainers = "/job:worker";

std::string device_of_ps(std::size_t ps) { return "/job:ps/task:" + std::to_string(ps); }

std::vector<std::int64_t> batch_of(const math::Shape& shape) {
  // The first size is that of the batch. A flat input has channels only.
  std::vector<std::int64_t> sizes = {data::kAnySize};
  if (shape.height != 1 || shape.width != 1) {
    sizes.push_back(static_cast<std::int64_t>(shape.height));
    sizes.push_back(static_cast<std::int64_t>(shape.width));
  }
  sizes.push_back(static_cast<std::int64_t>(shape.channels));
  return sizes;
}

// A variable, or the part of it that lies on one ps.
struct Part {
  std::size_t ps = 0;
  math::Range range;  // of the parameter vector
};

std::vector<Part> parts_of(const math::Variable& variable, std::size_t size, std::size_t ps) {
  std::vector<Part> parts;
  for (std::size_t index = 0; index < ps; ++index) {
    const math::Range shard = math::shard_range(size, index, ps);
    const math::Range range{.begin = std::max(shard.begin, variable.offset),
                            .end = std::min(shard.end, variable.offset + variable.size)};
    // A variable may lie on several ps, since ranges are cut without regard to variables.
    if (range.begin < range.end) {
      parts.push_back({.ps = index, .range = range});
    }
  }
  return parts;
}

class GraphOfRun {
 public:
  GraphOfRun(const RunConfig& config, const math::ParameterLayout& layout, std::size_t ps)
      : config_(config), layout_(layout), ps_(ps), on_ps_(ps) {}

  std::vector<data::GraphNode> nodes() && {
    if (config_.model.is_program()) {
      add_program();
    } else {
      add_layers();
    }
    add_updates();
    return std::move(nodes_);
  }

 private:
  void add(data::GraphNode node) { nodes_.push_back(std::move(node)); }

  // One node, since only the user knows what it does with its variables.
  void add_program() {
    constexpr const char* kProgram = "program";
    std::vector<std::string> inputs;
    // A graph of more nodes than these shows nothing.
    constexpr std::size_t kMostVariables = 1000;
    for (const math::Variable& variable :
         layout_.variables().first(std::min(layout_.variables().size(), kMostVariables))) {
      add_variable(variable, "variables", inputs);
    }
    add({.name = kProgram,
         .op = kProgram,
         .inputs = std::move(inputs),
         .device = kTrainers,
         .shape = {}});
    add({.name = "loss", .op = "loss", .inputs = {kProgram}, .device = kTrainers, .shape = {}});
  }

  void add_layers() {
    const math::Shape& input = config_.model.input;
    add({.name = config_.model.numbers ? "numbers" : "images",
         .op = "Placeholder",
         .inputs = {},
         .device = kTrainers,
         .shape = batch_of(input)});
    add({.name = "labels",
         .op = "Placeholder",
         .inputs = {},
         .device = kTrainers,
         .shape = {data::kAnySize}});
    std::string last = nodes_.front().name;
    const std::vector<math::LayerSpec> specs = math::layers_of(config_.model);
    const std::vector<math::PlacedLayer> layers = math::make_layers(config_.model);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      last = add_layer(layers[i], specs[i].type, last);
    }
    add({.name = "loss",
         .op = std::string(math::loss_type(config_.model.loss).name),
         .inputs = {last, "labels"},
         .device = kTrainers,
         .shape = {}});
  }

  std::string add_layer(const math::PlacedLayer& placed, const std::string& type,
                        const std::string& input) {
    std::vector<std::string> inputs = {input};
    // The layout lists variables in the order of the layers, so one counter is enough.
    for (std::size_t i = 0; i < placed.layer->variables().size(); ++i) {
      add_variable(layout_.variables()[variable_++], placed.name, inputs);
    }
    std::string name = placed.name + "/" + type;
    add({.name = name,
         .op = type,
         .inputs = std::move(inputs),
         .device = kTrainers,
         .shape = batch_of(placed.layer->output())});
    return name;
  }

  void add_variable(const math::Variable& variable, const std::string& layer,
                    std::vector<std::string>& inputs) {
    const std::vector<Part> parts = parts_of(variable, layout_.size(), ps_);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::string name = layer + "/" + variable.name;
      std::vector<std::int64_t> shape(variable.shape.begin(), variable.shape.end());
      // A divided variable gets a node for each ps, whose part is a flat range.
      if (parts.size() > 1) {
        name += "/part_" + std::to_string(i);
        shape = {static_cast<std::int64_t>(parts[i].range.size())};
      }
      add({.name = name,
           .op = "VariableV2",
           .inputs = {},
           .device = device_of_ps(parts[i].ps),
           .shape = std::move(shape),
           .attributes = {{"parameters", "[" + std::to_string(parts[i].range.begin) + ", " +
                                             std::to_string(parts[i].range.end) + ")"}}});
      inputs.push_back(name);
      on_ps_[parts[i].ps].push_back(name);
    }
  }

  void add_updates() {
    const auto parameters = static_cast<std::int64_t>(layout_.parameter_count());
    add({.name = "gradient",
         .op = "gradient",
         .inputs = {"loss"},
         .device = kTrainers,
         .shape = {parameters}});
    const auto kind = static_cast<std::size_t>(config_.optimizer.kind);
    for (std::size_t index = 0; index < ps_; ++index) {
      std::vector<std::string> inputs = {"gradient"};
      inputs.insert(inputs.end(), on_ps_[index].begin(), on_ps_[index].end());
      const math::Range shard = math::shard_range(layout_.size(), index, ps_);
      add({.name = "update/ps_" + std::to_string(index),
           .op = std::string(math::optimizer_names()[kind]),
           .inputs = std::move(inputs),
           .device = device_of_ps(index),
           .shape = {static_cast<std::int64_t>(shard.size())}});
    }
  }

  const RunConfig& config_;
  const math::ParameterLayout& layout_;
  std::size_t ps_;
  std::size_t variable_ = 0;                     // the next variable of the layout
  std::vector<std::vector<std::string>> on_ps_;  // names of variables, by ps
  std::vector<data::GraphNode> nodes_;
};

}  // namespace

std::vector<data::HyperParameter> hyper_parameters(const RunConfig& config) {
  std::vector<data::HyperParameter> parameters;
  const nlohmann::json settings = data::parse_json(shown_settings(config));
  for (const auto& [name, value] : settings.items()) {
    // A checksum is of no use in a table of hyperparameters.
    if (name == "data_checksum") {
      continue;
    }
    data::HyperParameter parameter{.name = name, .value = std::string()};
    if (value.is_boolean()) {
      parameter.value = value.get<bool>();
    } else if (value.is_number()) {
      parameter.value = value.get<double>();
    } else if (value.is_string()) {
      parameter.value = value.get<std::string>();
    } else if (name == "model") {
      parameter.value = math::describe(config.model);
    } else {
      parameter.value = value.is_null() ? "none" : data::json_text(value);
    }
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

std::vector<data::GraphNode> run_graph(const RunConfig& config, const math::ParameterLayout& layout,
                                       std::size_t ps) {
  return GraphOfRun(config, layout, ps).nodes();
}

}  // namespace disttf::roles
