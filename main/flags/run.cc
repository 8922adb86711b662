#include "main/flags/run.h"

#include <CLI/CLI.hpp>

#include "main/flags/flag_group.h"
#include "net/wire/text.h"

namespace disttf {

void RunFlags::add_to(CLI::App& app, CredentialFlags::Of of) {
  training.add_to(app);
  checkpoints.add_to(app);
  output.add_to(app, training.settings);
  data.add_to(app, DataFlags::Takes::kDownloadOnly);
  timeouts.add_to(app);
  network.add_to(app, of);
}

void RunFlags::add_last(CLI::App& app) {
  add_confine(app, confine);
  testing.add_to(app);
}

roles::RunConfig RunFlags::run_config(std::size_t ps, std::size_t trainers) const {
  return training.run_config(ps, trainers, !data.own.path.empty());
}

std::string RunFlags::summary_directory() const {
  return output.summary_directory(checkpoints.train_dir);
}

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
    arguments.push_back("--" + option->get_lnames().front() + "=" +
                        net::joined(option->results(), ","));
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
