// The parts of the published configuration's JSON that are no settings: facts about examples, a
// program's variables, single values. Pure functions; callable from any thread.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "math/model_spec.h"
#include "run/run_config.h"

namespace disttf::roles {

// Formats a value for a sentence: shortened for readability, control characters escaped.
[[nodiscard]] std::string shown(const nlohmann::json& value);

// Returns a float as the shortest decimal that reads back as the same float.
[[nodiscard]] double short_number(float value);

// The facts about examples in the JSON of a checkpoint or a model's file: the value of "examples".
[[nodiscard]] nlohmann::json facts_to_json(const ExampleFacts& facts);

// Reads them back; each part may be missing. Throws std::invalid_argument with the key, the value
// and what is allowed.
[[nodiscard]] ExampleFacts facts_from_json(const nlohmann::json& json);

// The variables of a user's program in the JSON that the chief publishes, as the value of "model":
//
//   {"variables": [["fc1.weight", [784, 100]], ["fc1.bias", [100], {"decays": false}],
//                  ["bn.running_mean", [32], {"momentum": 0.9}], ["scale", [], {"rate_factor":
//                  0}]]}
//
// The object at the end of a variable has what differs from the default (math::Variable); it is
// left out if nothing does. Lists instead of objects, since there may be 65 536 of them.

// In an elastic run "fingerprint" follows, an object of texts (math::ModelSpec::fingerprint).
[[nodiscard]] nlohmann::json program_to_json(const math::ModelSpec& model);

// Reads it back into a model without anything else. Throws std::invalid_argument with what is
// allowed, since a peer sends it. Checks the types, and every length before it copies;
// math::validate() checks the values.
[[nodiscard]] math::ModelSpec program_from_json(const nlohmann::json& json);

// Reads a fingerprint, of a program or of a peer; nullopt: it is not an object of at most 32 texts
// of at most 256 bytes each.
[[nodiscard]] std::optional<std::map<std::string, std::string>> fingerprint_from_json(
    const nlohmann::json& json);

}  // namespace disttf::roles
