// Runs a command line, from its words to the exit code.
#pragma once

#include <string>
#include <vector>

namespace disttf {

// `arguments`: without the program's name. Logs errors as sentences and throws nothing. REQUIRES:
// no second thread runs yet.
[[nodiscard]] int run_command_line(const std::vector<std::string>& arguments);

}  // namespace disttf
