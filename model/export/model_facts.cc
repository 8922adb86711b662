#include "model/export/model_facts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "data/json/json_text.h"

namespace disttf::roles {
namespace {

using Json = nlohmann::json;

// Names are a user's bytes, which need not be text.

std::string layers_json(const RunConfig& config) {
  RunConfig written = config;
  // A model that has a name is written as layers, too: other programs do not have disttf's names.
  written.model.layers = math::layers_of(config.model);
  return data::json_text(data::parse_json(to_json(written)).at("model"));
}

}  // namespace

ModelFacts facts_of(const TrainedModel& model) {
  const ExampleFacts& examples = model.config.examples;
  ModelFacts facts = {{"disttf.configuration", to_saved_json(model.config)},
                      {"disttf.step", std::to_string(model.step)},
                      {"disttf.weights_sha256", model.weights_sha256}};
  // A user's program has variables only.
  if (!model.config.model.is_program()) {
    facts["disttf.layers"] = layers_json(model.config);
  }
  if (model.accuracy) {
    facts["disttf.accuracy"] = fmt::format("{}", *model.accuracy);
  }
  if (!examples.classes.empty()) {
    facts["disttf.classes"] = data::json_text(Json(examples.classes));
  }
  if (!examples.columns.empty()) {
    facts["disttf.columns"] = data::json_text(Json(examples.columns));
  }
  return facts;
}

std::string to_json(const ModelFacts& facts) { return data::json_text(Json(facts)); }

}  // namespace disttf::roles
