// The files, folders and ports that a task needs, from its flags and the environment: the
// allow-list of its sandbox (roles/process/sandbox.h).
//
// Creates missing folders that the task will write to: the sandbox cannot allow what does not
// exist.
#pragma once

#include "main/command_line.h"
#include "roles/process/sandbox.h"

namespace disttf {

[[nodiscard]] roles::SandboxPolicy sandbox_policy_for(const RunTask& run,
                                                      const Environment& environment);
[[nodiscard]] roles::SandboxPolicy sandbox_policy_for(const RunDriver& run,
                                                      const Environment& environment);
[[nodiscard]] roles::SandboxPolicy sandbox_policy_for(const RunEvaluator& run,
                                                      const Environment& environment);
[[nodiscard]] roles::SandboxPolicy sandbox_policy_for(const RunServe& run,
                                                      const Environment& environment);
// With a page, which serves the network; `show` without one ends at once.
[[nodiscard]] roles::SandboxPolicy sandbox_policy_for(const RunShow& run,
                                                      const Environment& environment);

}  // namespace disttf
