#include "main/commands/manage.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "main/commands/launch_flags.h"
#include "main/flags/flag_group.h"
#include "net/wire/text.h"
#include "roles/launch/shell/control_verbs.h"

namespace disttf {

void ManagementCommand::add_options(CLI::App& app) {
  FlagGroup add(app, kManagement);
  add_own_options(app);
  add_control_flag(app, options_.socket, kManagement,
                   "control socket of the launch [that of this user's only running launch]");
  add.toggle("--json", options_.json, "print JSON");
}

std::unique_ptr<Action> ManagementCommand::action(const ParsedLine& line) {
  options_.variables = terminal_variables(line.environment);
  options_.directory = control_directory(line.environment);
  complete(options_);
  return run_with(options_, roles::run_manage);
}

std::string take_task(const std::string& verb, std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front().starts_with("-")) {
    throw std::invalid_argument(verb +
                                ": the task is missing; a name such as worker:1 or worker-1");
  }
  try {
    return net::task_name(net::task_from_name(take_first(arguments)));
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(verb + ": " + error.what());
  }
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  constexpr double kMost = 86'400;  // a day stands for "no limit"
  return std::chrono::milliseconds(
      // At least 1 ms: 0 would repeat without a pause.
      std::max<std::int64_t>(1, std::llround(std::min(seconds, kMost) * 1000)));
}

}  // namespace disttf
