// Metadata of a model in an exported file of any format:
//
//   disttf.configuration   of the run, with the facts about its examples, as in checkpoints
//   disttf.layers          in order, as in a model file, as JSON
//   disttf.step            number of updates
//   disttf.weights_sha256  hash of the variables before folding
//   disttf.accuracy        on a test set, if known
//   disttf.classes         names of the classes, a JSON list; if known
//   disttf.columns         names of the columns, a JSON list; if known
//
// Pure functions; callable from any thread.
#pragma once

#include <map>
#include <string>

#include "model/trained_model.h"

namespace disttf::roles {

using ModelFacts = std::map<std::string, std::string>;

[[nodiscard]] ModelFacts facts_of(const TrainedModel& model);

// All of them as one JSON object.
[[nodiscard]] std::string to_json(const ModelFacts& facts);

}  // namespace disttf::roles
