#include "model/import/import_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <variant>

#include "model/import/onnx_file.h"
#include "model/import/onnx_layers.h"
#include "model/import/weights_file.h"
#include "net/wire/text.h"

namespace disttf::roles {
namespace {

constexpr const char* kUnknownData = "imported";  // first word of result lines
constexpr const char* kConfiguration = "disttf.configuration";

// The configuration in disttf's metadata; none: not exported by disttf, or by another release.
std::optional<RunConfig> exported_config(const std::map<std::string, std::string>& facts) {
  const auto found = facts.find(kConfiguration);
  // Without it the file is still usable: its layers or the flags describe the model.
  return found == facts.end() ? std::nullopt : saved_config(found->second);
}

// Takes over names, means, scales and the data set from the exported configuration, if its examples
// have the same shape.
void take_facts(const std::optional<RunConfig>& exported, RunConfig& config) {
  if (!exported || exported->model.is_program() || exported->model.input != config.model.input ||
      exported->model.classes != config.model.classes ||
      exported->model.numbers != config.model.numbers) {
    return;
  }
  // Names and scales of other examples would be wrong, hence the comparison above.
  config.examples = exported->examples;
  config.dataset = exported->dataset;
  config.data_checksum = exported->data_checksum;
}

math::AlignedVector parameters_from(const math::ParameterLayout& layout,
                                    const std::vector<std::vector<float>>& variables) {
  math::AlignedVector parameters(layout.size());
  for (std::size_t i = 0; i < variables.size(); ++i) {
    std::copy(variables[i].begin(), variables[i].end(),
              // Offsets are aligned; the padding between variables stays 0.
              parameters.data() + layout.variables()[i].offset);
  }
  return parameters;
}

ImportedModel import_onnx(std::string_view bytes, const std::string& where,
                          const ImportWishes& wishes) {
  if (wishes.names_model) {
    throw std::invalid_argument("--model: " + where + " contains its layers; remove this flag");
  }
  const OnnxFile file = read_onnx(bytes, where);
  const std::optional<RunConfig> exported = exported_config(file.facts);
  InputWishes input{.shape = wishes.input, .layout = wishes.layout};
  // One more hint about the order of the input's sizes; it decides only what nothing else does.
  if (exported) {
    input.exported_from = exported->model.input;
  }
  ImportedLayers read = layers_of_onnx(file, where, input);
  if (wishes.classes && *wishes.classes != read.model.classes) {
    throw std::invalid_argument("--classes: " + std::to_string(*wishes.classes) + ", and " + where +
                                " has " + std::to_string(read.model.classes) + " classes");
  }
  ImportedModel imported{.has_layers = true, .notes = std::move(read.notes)};
  imported.model.config = wishes.config;
  imported.model.config.model = std::move(read.model);
  take_facts(exported, imported.model.config);
  imported.model.parameters =
      parameters_from(math::layout_of(imported.model.config.model), read.variables);
  return imported;
}

math::ModelSpec wanted_model(const WeightsFile& file, const std::string& where,
                             const ImportWishes& wishes) {
  std::optional<RunConfig> exported = exported_config(file.facts());
  // A program's variables fit any layers of the same names and shapes, but they name none.
  if (exported && exported->model.is_program()) {
    exported.reset();
  }
  if (!exported && !wishes.names_model) {
    throw std::invalid_argument("--model: missing; " + where +
                                " does not name the model of its variables");
  }
  if (exported && wishes.input && *wishes.input != exported->model.input) {
    throw std::invalid_argument("--input: " + math::to_string(*wishes.input) + ", and " + where +
                                " was exported from a model of " +
                                math::to_string(exported->model.input));
  }
  math::ModelSpec model = exported ? exported->model : wishes.config.model;
  if (wishes.names_model) {
    model.kind = wishes.config.model.kind;
    // A flag names the whole model, so none of the exported layers may remain.
    model.layers = wishes.config.model.layers;
    model.hidden = wishes.config.model.hidden;
  }
  if (wishes.input) {
    model.input = *wishes.input;
    // An input of one row and one column is a row of a table, not an image.
    model.numbers = model.input.height == 1 && model.input.width == 1;
  }
  model.classes = wishes.classes.value_or(model.classes);
  return model;
}

math::ParameterLayout layout_or_refuse(const math::ModelSpec& model, const std::string& where) {
  try {
    return math::layout_of(model);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(where + ": the model of its variables: " + error.what());
  }
}

ImportedModel import_weights(std::span<const std::uint8_t> bytes, const std::string& where,
                             const ImportWishes& wishes) {
  if (wishes.layout) {
    throw std::invalid_argument("--input_layout: " + where +
                                " contains variables and no graph; remove this flag");
  }
  const WeightsFile file(bytes, where);
  ImportedModel imported;
  RunConfig& config = imported.model.config;
  config = wishes.config;
  config.model = wanted_model(file, where, wishes);
  const math::ParameterLayout layout = layout_or_refuse(config.model, where);
  // Before allocating: a small file must not claim a huge model.
  if (!file.can_hold(layout.parameter_count())) {
    throw std::invalid_argument(
        fmt::format("{}: it has {} bytes, too few for the {} parameters of "
                    "the model",
                    where, bytes.size(), layout.parameter_count()));
  }
  take_facts(exported_config(file.facts()), config);
  if (wishes.require_memory) {
    wishes.require_memory(layout.size() * sizeof(float));
  }
  imported.model.parameters = math::AlignedVector(layout.size());
  file.read(layout, imported.model.parameters.span());
  const std::vector<std::string> others = file.others(layout);
  if (!others.empty()) {
    imported.notes.push_back(
        fmt::format("{}: ignoring {} and {} more, which are not variables of the model", where,
                    net::quoted(others.front()), others.size() - 1));
  }
  // A model that a flag names needs no model file.
  imported.has_layers = !config.model.layers.empty() && !wishes.names_model;
  return imported;
}

}  // namespace

ImportedModel import_model(std::span<const std::uint8_t> bytes, const std::string& where,
                           const ImportWishes& wishes) {
  ImportedModel imported =
      WeightsFile::kind_of(bytes) == WeightsFile::Kind::kNone
          ? import_onnx({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, where, wishes)
          : import_weights(bytes, where, wishes);
  TrainedModel& model = imported.model;
  if (model.config.dataset.empty()) {
    model.config.dataset = kUnknownData;
  }
  // Of the imported numbers; another program's file has no hash of disttf's.
  model.weights_sha256 = weights_hash(math::layout_of(model.config.model), model.parameters.span());
  return imported;
}

std::string to_model_file(const std::vector<math::LayerSpec>& layers) {
  std::string text;
  for (const math::LayerSpec& layer : layers) {
    text += fmt::format("{}[[layer]]\ntype = \"{}\"\n", text.empty() ? "" : "\n", layer.type);
    if (!layer.name.empty()) {
      text += fmt::format("name = \"{}\"\n", layer.name);
    }
    for (const auto& [field, value] : layer.fields) {
      // As float, for the shortest decimal: 0.9, not 0.8999999761581421.
      text += std::holds_alternative<double>(value)
                  ? fmt::format("{} = {}\n", field, static_cast<float>(std::get<double>(value)))
                  : fmt::format("{} = \"{}\"\n", field, std::get<std::string>(value));
    }
  }
  return text;
}

}  // namespace disttf::roles
