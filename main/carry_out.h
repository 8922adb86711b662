// Runs the action that the command line asks for.
#pragma once

#include "main/command_line.h"

namespace disttf {

// Enters the sandbox, runs --debug_attempts, then runs the action. Returns the exit code of the
// process. REQUIRES: no second thread runs yet. Throws roles::Failure and other exceptions; each
// message is a sentence.
[[nodiscard]] int carry_out(Invocation& invocation, const Environment& environment);

}  // namespace disttf
