// What goes along with a model into whatever file: what it is, of which run, and how good.
//
//   disttf.configuration   the run's, with what is known of its examples, as checkpoints have it
//   disttf.layers          from the first to the last, as a model file has them, in JSON
//   disttf.step            updates that made it
//   disttf.weights_sha256  of its variables, before anything was folded
//   disttf.accuracy        of a test set, where it is known
//   disttf.classes         their names, a list in JSON; disttf.columns likewise. Where there are
//   any
//
// Pure functions; callable from any thread.
#pragma once

#include <map>
#include <string>

#include "roles/model/core/trained_model.h"

namespace disttf::roles {

using ModelFacts = std::map<std::string, std::string>;

[[nodiscard]] ModelFacts facts_of(const TrainedModel& model);

// One JSON object of them all.
[[nodiscard]] std::string to_json(const ModelFacts& facts);

}  // namespace disttf::roles
