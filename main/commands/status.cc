#include <CLI/CLI.hpp>
#include <stdexcept>

#include "main/commands/manage.h"
#include "main/commands/registry.h"
#include "main/flags/flag_group.h"
#include "net/wire/text.h"

namespace disttf {
namespace {

// `--watch` without a number is `--watch 2`.
void complete_watch(std::vector<std::string>& arguments) {
  const auto is_number = [](const std::string& word) {
    return !word.empty() && (net::is_digit(word.front()) || word.front() == '.');
  };
  for (auto each = arguments.begin(); each != arguments.end(); ++each) {
    const bool is_watch = *each == "--watch" || *each == "-w";
    if (is_watch && (each + 1 == arguments.end() || (each + 1)->starts_with("-"))) {
      // insert() invalidates `each`; its result is the new word, which the loop then skips.
      each = arguments.insert(each + 1, "2");
    } else if (is_watch && !is_number(*(each + 1))) {
      throw std::invalid_argument("--watch: " + net::quoted(*(each + 1)) +
                                  " is not a number of seconds above 0");
    }
  }
}

class StatusCommand : public ManagementCommand {
 public:
  StatusCommand() : ManagementCommand(roles::ManageVerb::kStatus) {}

 private:
  void add_own_options(CLI::App& app) override {
    FlagGroup add(app, kManagement);
    add.decimal("--watch,-w", watch_s_, "[SECONDS]",
                "`status`: repeat every SECONDS (2 if omitted) until the run ends [once]");
    app.footer(
        "\ndisttf status --watch      redrawn; without a terminal prints changed rows\n"
        "disttf status --json");
  }

  void take(std::vector<std::string>& arguments) override { complete_watch(arguments); }

  void complete(roles::ManageOptions& options) override {
    if (watch_s_) {
      options.every = milliseconds_of(*watch_s_);
    }
  }

  std::optional<double> watch_s_;  // nullopt: once
};

}  // namespace

CommandRow status_command() {
  return {
      .name = "status",
      .description = "Show the tasks and the progress of a running launch",
      .about = "A row for each task: its address, state and number of restarts.",
      .examples = {{"disttf status --watch", "Again every 2 s, until the run ends."}},
      .files = {kSocketFile},
      .reads = {Reads::kRuntime, Reads::kTerminal},
      .see_also = {"launch", "top", "pods"},
      .make = make_command<StatusCommand>,
  };
}

}  // namespace disttf
