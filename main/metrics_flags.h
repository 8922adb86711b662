// The flags that export the metrics of a task or a launch.
#pragma once

#include <CLI/App.hpp>

#include "roles/monitor/shell/metrics_address.h"

namespace disttf {

void add_metrics_flags(CLI::App& app, roles::MetricsOptions& options);

// Whether the word is one of these flags. launch does not pass its own to its tasks, which get
// others.
[[nodiscard]] bool is_metrics_word(const std::string& word);

}  // namespace disttf
