// The files, folders and ports that a task needs, from its flags and the environment: the
// allow-list of its sandbox (roles/process/reach.h).
//
// Creates missing folders that the task will write to: the sandbox cannot allow what does not
// exist.
#pragma once

#include "main/command_line.h"
#include "roles/process/reach.h"

namespace disttf {

[[nodiscard]] roles::Reach reach_of(const RunTask& run, const Environment& environment);
[[nodiscard]] roles::Reach reach_of(const RunDriver& run, const Environment& environment);
[[nodiscard]] roles::Reach reach_of(const RunEvaluator& run, const Environment& environment);
[[nodiscard]] roles::Reach reach_of(const RunServe& run, const Environment& environment);
// With a page, which serves the network; `show` without one ends at once.
[[nodiscard]] roles::Reach reach_of(const RunShow& run, const Environment& environment);

}  // namespace disttf
