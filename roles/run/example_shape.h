// Whether a saved model takes the examples of a run. Pure; callable from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "roles/run/run_config.h"

namespace disttf::roles {

// Why a model that `saved_json` (to_json's, from a checkpoint) describes cannot be trained on the
// examples of `config`: they have another shape, even where they have as many numbers. nullopt: it
// can, or its shape is not known.
[[nodiscard]] std::optional<std::string> other_examples(const RunConfig& config,
                                                        std::string_view saved_json);

}  // namespace disttf::roles
