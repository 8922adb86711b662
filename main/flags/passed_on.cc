#include "main/flags/passed_on.h"

#include <CLI/CLI.hpp>

#include "main/flags/group_names.h"

namespace disttf {

std::vector<std::string> arguments_for_children(const CLI::App& app) {
  std::vector<std::string> arguments;
  for (const CLI::Option* option : app.get_options()) {
    // By group: flags that say what to start or where are for this process, all others are for the
    // tasks. Defaults are left out, so the tasks' own apply.
    if (option->count() == 0 || option->get_group() == kLaunchGroup ||
        option->get_group() == kCommandGroup || option->get_group() == kPageGroup ||
        option->get_group() == kProgramGroup || option->get_group() == kClusterGroup ||
        option->get_group() == kFindGroup || option->get_group() == kRenderGroup ||
        option == app.get_config_ptr() || option == app.get_help_ptr() ||
        option == app.get_help_all_ptr()) {
      continue;
    }
    std::string value;
    for (const std::string& part : option->results()) {
      value += (value.empty() ? "" : ",") + part;
    }
    arguments.push_back("--" + option->get_lnames().front() + "=" + value);
  }
  return arguments;
}

std::vector<std::string> arguments_for_tasks(const CLI::App& app) {
  std::vector<std::string> arguments = arguments_for_children(app);
  std::erase_if(arguments, [](const std::string& word) {
    // A flag given twice is an error, and the server adds the driver's values.
    return word.starts_with("--peer_timeout=") || word.starts_with("--heartbeat_timeout=");
  });
  return arguments;
}

}  // namespace disttf
