// Shared by the tests of the command line: lines written as a user types them, and their results.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

#include "main/command_line.h"
#include "main/commands/task_actions.h"
#include "tests/support/thrown.h"

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

// Returns the action, of the class that is expected. Throws std::logic_error if it is of another.
template <typename Expected>
Expected action_of(const Invocation& invocation) {
  const auto* const action = dynamic_cast<const Expected*>(invocation.action.get());
  if (action == nullptr) {
    const Action& other = *invocation.action;
    throw std::logic_error(std::string("the action is a ") + typeid(other).name() + ", not a " +
                           typeid(Expected).name());
  }
  return *action;
}
template <typename Expected>
Expected action_of(const std::string& line, const Environment& environment = {}) {
  return action_of<Expected>(parse(line, environment));
}

// Returns the options with which the line calls a function. Throws as above.
template <typename Options>
Options called_with(const std::string& line, const Environment& environment = {}) {
  return action_of<RunWith<Options>>(line, environment).options;
}
inline roles::TrainerOptions parse_task(const std::string& line,
                                        const Environment& environment = {}) {
  return action_of<RunTask>(line, environment).options;
}
inline roles::LaunchOptions parse_launch(const std::string& line,
                                         const Environment& environment = {}) {
  return called_with<roles::LaunchOptions>(line, environment);
}

// Returns the message that rejects the line.
inline std::string refusal(const std::string& line, const Environment& environment = {}) {
  return sentence_of([&] { return parse(line, environment); }, "(accepted)");
}

// Two lists that most lines need: one ps, two workers. Other tests cover secrets.
inline const std::string kOtherMachines = " --ps_hosts=ps0:2222 --worker_hosts=w0:2222,w1:2222 ";
inline const std::string kHosts = kOtherMachines + "--insecure ";

}  // namespace disttf
