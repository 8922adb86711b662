// All commands. A new one is a file beside this one, a declaration and a row here.
#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "main/commands/command.h"

namespace disttf {

// In the order in which the help lists them.
[[nodiscard]] const std::vector<CommandRow>& commands();

// Null: there is none of that name.
[[nodiscard]] const CommandRow* find_command(std::string_view name);

// Removes the command from the front of `arguments`. Flags without a command mean train. Throws
// std::invalid_argument for an unknown command.
[[nodiscard]] const CommandRow& take_command(std::vector<std::string>& arguments);

// An app that parses the flags of one command. Each command is an app of its own, so that --help
// shows what that command takes and a --config file needs no section names.
class CommandApp : public CLI::App {
 public:
  explicit CommandApp(const CommandRow& row);

  [[nodiscard]] Command& command() const { return *command_; }

 private:
  std::unique_ptr<Command> command_;
};

// The rows, each in the file of its name. For registry.cc.
CommandRow checkpoint_command();
CommandRow chief_command();
CommandRow completion_command();
CommandRow cp_command();
CommandRow data_command();
CommandRow doctor_command();
CommandRow download_command();
CommandRow endpoints_command();
CommandRow evaluator_command();
CommandRow export_command();
CommandRow healthcheck_command();
CommandRow import_command();
CommandRow launch_command();
CommandRow licenses_command();
CommandRow logs_command();
CommandRow ls_command();
CommandRow model_command();
CommandRow page_command();
CommandRow plot_command();
CommandRow plus_command();
CommandRow pods_command();
CommandRow predict_command();
CommandRow ps_command();
CommandRow render_command();
CommandRow resolve_command();
CommandRow serve_command();
CommandRow server_command();
CommandRow show_command();
CommandRow status_command();
CommandRow top_command();
CommandRow trace_command();
CommandRow train_command();
CommandRow update_command();
CommandRow verify_command();
CommandRow worker_command();

}  // namespace disttf
