// The words of a command line, from parsing them to the exit code.
#pragma once

#include <string>
#include <vector>

namespace disttf {

// `arguments`: without the program's name. What is wrong is logged, in a sentence: nothing is
// thrown. REQUIRES: there is no second thread yet.
[[nodiscard]] int run_command_line(const std::vector<std::string>& arguments);

}  // namespace disttf
