#include <CLI/CLI.hpp>
#include <stdexcept>
#include <utility>

#include "main/commands/registry.h"
#include "main/flag_values.h"
#include "net/wire/text.h"
#include "storage/checkpoint/shell/checkpoint_command.h"

namespace disttf {
namespace {

class CheckpointCommand : public WordCommand {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("ACTION")
        ->description("ls, verify or show")
        ->check(one_of({"ls", "verify", "show"}));
    app.add_option("DIR")->description("The --train_dir of a run, or one checkpoint in it");
    app.footer(
        "\nls      one line for each checkpoint, newest first\n"
        "verify  reads everything; prints a line for each wrong file or tensor, then exits with 3\n"
        "show    step, configuration and tensors of the newest complete one");
  }

  std::unique_ptr<Action> action(const ParsedLine& /*line*/) override {
    return run_with(command_, roles::run_checkpoint_command);
  }

 private:
  void take(std::vector<std::string>& arguments) override {
    const auto fail = [](const std::string& sentence) {
      throw std::invalid_argument(sentence + " (see disttf checkpoint --help)");
    };
    if (arguments.empty()) {
      fail("checkpoint: the action is missing; ls, verify or show");
    }
    const std::string name = take_first(arguments);
    const auto action = roles::checkpoint_action_from_name(name);
    if (!action) {
      fail("checkpoint: " + net::quoted(name) + " is not ls, verify or show");
    }
    if (!begins_with_word(arguments)) {
      fail("checkpoint " + name + ": the directory is missing");
    }
    command_ = {.action = *action, .directory = take_first(arguments)};
  }

  roles::CheckpointCommand command_;
};

}  // namespace

CommandRow checkpoint_command() {
  return {
      .name = "checkpoint",
      .description = "List, verify or show checkpoints",
      .words = "ls|verify|show DIR",
      .about = "Only reads; works while a run writes.",
      .examples = {{"disttf checkpoint verify run",
                    "Reads every byte; exit code 3 if one is wrong."}},
      .files = {kCheckpointsFile, kBestFile},
      .reads = {Reads::kStores},
      .see_also = {"launch", "export", "predict"},
      .make = make_command<CheckpointCommand>,
  };
}

}  // namespace disttf
