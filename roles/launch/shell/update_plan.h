// What an update changes in a running launch, and how: compares the present options with the wanted
// ones.
//
// Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "roles/launch/shell/launcher.h"

namespace disttf::roles {

struct UpdatePlan {
  // "--log_every: 500 -> 100"; a missing flag is shown as "default".
  std::vector<std::string> changes;
  std::size_t new_workers = 0;  // that join the run
  bool rolls = false;           // settings of tasks: restarts one after the other
  bool restarts = false;        // restarts all tasks, from the newest checkpoint
};

// Throws JobRefusal with a sentence that names what cannot change, and why.
[[nodiscard]] UpdatePlan plan_update(const LaunchOptions& now, const LaunchOptions& wanted);

// Whether an update may change that flag of the tasks, such as "log_every".
[[nodiscard]] bool is_changed_by_updates(std::string_view flag) noexcept;

// The value of "--name=value" among the arguments; empty: none.
[[nodiscard]] std::string argument_value(const std::vector<std::string>& arguments,
                                         const std::string& name);

}  // namespace disttf::roles
