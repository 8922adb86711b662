// The facts about examples in the JSON of a checkpoint or a model's file: the value of "examples".
// Pure functions; callable from any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "run/run_config.h"

namespace disttf::roles {

[[nodiscard]] nlohmann::json facts_to_json(const ExampleFacts& facts);

// Reads them back; each part may be missing. Throws std::invalid_argument with the key, the value
// and what is allowed.
[[nodiscard]] ExampleFacts facts_from_json(const nlohmann::json& json);

}  // namespace disttf::roles
