// What the command line asks for, done.
#pragma once

#include "main/command_line.h"

namespace disttf {

// Confines this process, tries out what is to be tried out, and does it; returns the exit code of
// the process. REQUIRES: there is no second thread yet. Throws roles::Failure and other exceptions,
// each with a sentence, for what goes wrong.
[[nodiscard]] int carry_out(Invocation& invocation, const Environment& environment);

}  // namespace disttf
