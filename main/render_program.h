// The flags of `disttf render` for a user's own program, and their checks.
#pragma once

#include <string>

#include "main/flags/flag_group.h"
#include "main/render_flags.h"

namespace disttf {

void add_program_flags(FlagGroup& add, RenderFlags& flags);

// Returns the path of --program; empty: none is given. Throws std::invalid_argument if the flags do
// not fit together.
[[nodiscard]] std::string checked_program(const RenderFlags& flags);

}  // namespace disttf
