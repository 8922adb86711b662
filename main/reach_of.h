// What a task needs of this machine, by its flags and the environment: the files, folders and ports
// that it is kept within from then on (roles/process/reach.h).
//
// Folders that a task would make are made, as what is not there cannot be reached later.
#pragma once

#include "main/command_line.h"
#include "roles/process/reach.h"

namespace disttf {

[[nodiscard]] roles::Reach reach_of(const RunTask& run, const Environment& environment);
[[nodiscard]] roles::Reach reach_of(const RunDriver& run, const Environment& environment);
[[nodiscard]] roles::Reach reach_of(const RunEvaluator& run, const Environment& environment);
[[nodiscard]] roles::Reach reach_of(const RunServe& run, const Environment& environment);
// With a page, which answers others; without one `show` ends at once.
[[nodiscard]] roles::Reach reach_of(const RunShow& run, const Environment& environment);

}  // namespace disttf
