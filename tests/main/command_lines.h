// Shared by the tests of the command line: lines written as a user types them, and their results.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "main/command_line.h"

namespace disttf {

// Splits at spaces; no word of these tests contains one.
inline std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> found;
  for (std::string word; in >> word;) {
    found.push_back(word);
  }
  return found;
}

inline Invocation parse(const std::string& line, const Environment& environment = {}) {
  return parse_command_line(words(line), environment);
}

// Returns the options of a task. Throws std::bad_variant_access if the line selects another action.
inline roles::TrainerOptions parse_task(const std::string& line,
                                        const Environment& environment = {}) {
  return std::get<RunTask>(parse(line, environment).action).options;
}
inline roles::LaunchOptions parse_launch(const std::string& line,
                                         const Environment& environment = {}) {
  return std::get<RunLaunch>(parse(line, environment).action).options;
}

// Returns the message that rejects the line.
inline std::string refusal(const std::string& line, const Environment& environment = {}) {
  try {
    static_cast<void>(parse(line, environment));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "(accepted)";
}

// Two lists that most lines need: one ps, two workers. Other tests cover secrets.
inline const std::string kOtherMachines = " --ps_hosts=ps0:2222 --worker_hosts=w0:2222,w1:2222 ";
inline const std::string kHosts = kOtherMachines + "--insecure ";

}  // namespace disttf
