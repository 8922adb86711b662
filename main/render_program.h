// The flags of `disttf render` for a user's own program, and their checks.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "main/render_flags.h"

namespace disttf {

void add_program_flags(CLI::App& app, RenderFlags& flags, const char* group);

// Returns the path of --program; empty: none is given. Throws std::invalid_argument if the flags do
// not fit together.
[[nodiscard]] std::string checked_program(const RenderFlags& flags);

}  // namespace disttf
