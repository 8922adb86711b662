// What the tests of the command line share: lines written as a person types them, and what becomes
// of them.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "main/command_line.h"

namespace disttf {

// Words between spaces; no word of these tests holds one.
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

// Throws std::bad_variant_access when something else is to be done.
inline roles::TrainerOptions parse_task(const std::string& line,
                                        const Environment& environment = {}) {
  return std::get<RunTask>(parse(line, environment).action).options;
}
inline roles::LaunchOptions parse_launch(const std::string& line,
                                         const Environment& environment = {}) {
  return std::get<RunLaunch>(parse(line, environment).action).options;
}

// The sentence that refuses the line.
inline std::string refusal(const std::string& line, const Environment& environment = {}) {
  try {
    static_cast<void>(parse(line, environment));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "(accepted)";
}

// Two lists that most lines need: one ps, two workers. What is said of secrets is tested elsewhere.
inline const std::string kOtherMachines = " --ps_hosts=ps0:2222 --worker_hosts=w0:2222,w1:2222 ";
inline const std::string kHosts = kOtherMachines + "--insecure ";

}  // namespace disttf
