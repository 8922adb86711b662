// A run as text for a terminal: result, settings, curves, tasks, checkpoints, events.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "run/monitor/core/chart.h"

namespace disttf::roles {

// `view`: of the run, as in run_chart.h; `name`: its path. `style`: of the curves. `width`: tables
// and lines are truncated there; 0: not, for output that is no terminal. Ends with a newline.
[[nodiscard]] std::string show_text(const nlohmann::ordered_json& view, const std::string& name,
                                    const TextStyle& style, std::size_t width);

// The settings of a run that differ from their defaults: {"batch_size": 50}. `published`: in the
// form of the published configuration (run/run_config.h).
[[nodiscard]] nlohmann::ordered_json changed_settings(const nlohmann::ordered_json& published);

}  // namespace disttf::roles
