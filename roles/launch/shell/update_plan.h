// What an update changes in a running launch, and how: a comparison of what it was started with and
// what it is to be.
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
  // "--log_every: 500 -> 100"; what is not there stands as "default".
  std::vector<std::string> changes;
  std::size_t new_workers = 0;  // that join what runs
  bool rolls = false;           // settings of tasks: one is restarted after the other
  bool restarts = false;        // all tasks together, from the newest checkpoint
};

// Throws JobRefusal with a sentence that names what cannot be changed, and why.
[[nodiscard]] UpdatePlan plan_update(const LaunchOptions& now, const LaunchOptions& wanted);

// Whether an update may change that flag of the tasks, "log_every".
[[nodiscard]] bool is_changed_by_updates(std::string_view flag) noexcept;

// The value of "--name=value" among the arguments; empty: not there.
[[nodiscard]] std::string argument_value(const std::vector<std::string>& arguments,
                                         const std::string& name);

}  // namespace disttf::roles
