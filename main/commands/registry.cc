#include "main/commands/registry.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <stdexcept>

#include "main/config_file.h"
#include "main/help_text.h"
#include "main/parse_flags.h"
#include "net/wire/text.h"

namespace disttf {
namespace {

std::string command_names() { return net::joined(commands(), ", ", &CommandRow::name); }

}  // namespace

const std::vector<CommandRow>& commands() {
  static const std::vector<CommandRow> kCommands = {
      launch_command(),    ps_command(),         worker_command(),      chief_command(),
      evaluator_command(), train_command(),      server_command(),      plus_command(),
      download_command(),  checkpoint_command(), model_command(),       data_command(),
      resolve_command(),   doctor_command(),     verify_command(),      render_command(),
      predict_command(),   serve_command(),      healthcheck_command(), export_command(),
      import_command(),    ls_command(),         cp_command(),          plot_command(),
      show_command(),      completion_command(), licenses_command(),    status_command(),
      top_command(),       trace_command(),      page_command(),        endpoints_command(),
      logs_command(),      pods_command(),       update_command()};
  return kCommands;
}

const CommandRow* find_command(std::string_view name) {
  const auto found = std::ranges::find(
      commands(), name, [](const CommandRow& each) { return std::string_view(each.name); });
  return found == commands().end() ? nullptr : &*found;
}

const CommandRow& take_command(std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front().starts_with("-")) {
    return *find_command("train");
  }
  const CommandRow* const row = find_command(arguments.front());
  if (row == nullptr) {
    throw std::invalid_argument("\"" + arguments.front() + "\" is not a command; one of " +
                                command_names());
  }
  arguments.erase(arguments.begin());
  return *row;
}

void WordCommand::take_words(const CLI::App& app, std::vector<std::string>& arguments) {
  arguments = words_first(app, arguments);
  take(arguments);
}

CommandApp::CommandApp(const CommandRow& row)
    : CLI::App(row.description, std::string("disttf ") + row.name), command_(row.make()) {
  option_defaults()->always_capture_default(false);
  show_plain_help(*this, row.examples);
  set_help_flag("-h,--help", "Print this help and exit");
  set_help_all_flag("--help-all", "Print the help with all flags and exit");
  add_config_file(*this, command_->config_names())->type_name("FILE");
  // A misspelled key must not train with the default value.
  allow_config_extras(CLI::config_extras_mode::error);
  command_->add_options(*this);
  command_->add_last_options(*this);
}

}  // namespace disttf
