#include <CLI/CLI.hpp>

#include "main/commands/manage.h"
#include "main/commands/registry.h"
#include "main/flags/flag_group.h"

namespace disttf {
namespace {

class LogsCommand : public ManagementCommand {
 public:
  LogsCommand() : ManagementCommand(roles::ManageVerb::kLogs) {}

  [[nodiscard]] NextWord next_word(std::span<const std::string> words) const override {
    return words.empty() ? NextWord::kTask : NextWord::kNone;
  }

 private:
  void add_own_options(CLI::App& app) override {
    FlagGroup add(app, kManagement);
    app.add_option("TASK")->description("worker:1, or worker-1");
    add.toggle("--follow,-f", options_.follow, "`logs`: follow the output until the run ends");
  }

  void take(std::vector<std::string>& arguments) override {
    options_.task = take_task("logs", arguments);
  }
};

}  // namespace

CommandRow logs_command() {
  return {
      .name = "logs",
      .description = "Print the output of a task of a running launch",
      .words = "TASK",
      .about = "The launch keeps the newest 128 KiB of each task.",
      .examples = {{"disttf logs worker-1 -f", "Prints the output and follows it."}},
      .files = {kSocketFile},
      .reads = {Reads::kRuntime, Reads::kTerminal},
      .see_also = {"status", "pods"},
      .make = make_command<LogsCommand>,
  };
}

}  // namespace disttf
