// Whether a saved model fits the examples of a run. Pure; callable from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "run/run_config.h"

namespace disttf::roles {

// Returns why a model that `saved_json` describes (to_json's, from a checkpoint) cannot be trained
// on the examples of `config`: their shape differs, even if the number of values is the same.
// nullopt: it can, or its shape is unknown.
[[nodiscard]] std::optional<std::string> other_examples(const RunConfig& config,
                                                        std::string_view saved_json);

}  // namespace disttf::roles
