#include <CLI/CLI.hpp>
#include <stdexcept>

#include "main/commands/manage.h"
#include "main/commands/registry.h"
#include "main/flag_values.h"
#include "net/wire/text.h"

namespace disttf {
namespace {

constexpr const char* kPodsActions = "list, restart TASK or replace TASK";

class PodsCommand : public ManagementCommand {
 public:
  PodsCommand() : ManagementCommand(roles::ManageVerb::kPodsList) {}

  [[nodiscard]] NextWord next_word(std::span<const std::string> words) const override {
    const bool has_task = words.size() == 1 && (words[0] == "restart" || words[0] == "replace");
    return has_task ? NextWord::kTask : ManagementCommand::next_word(words);
  }

 private:
  void add_own_options(CLI::App& app) override {
    app.add_option("ACTION")
        ->description(kPodsActions)
        ->check(one_of({"list", "restart", "replace"}));
    app.footer(
        "\nrestart  SIGTERM, and a new process at the same address\n"
        "replace  kill -9, and a new process, of a worker at a new address");
  }

  void take(std::vector<std::string>& arguments) override {
    if (arguments.empty() || arguments.front().starts_with("-")) {
      throw std::invalid_argument(std::string("pods: the action is missing; ") + kPodsActions);
    }
    const std::string verb = take_first(arguments);
    if (verb == "list") {
      return;
    }
    if (verb != "restart" && verb != "replace") {
      throw std::invalid_argument("pods: " + net::quoted(verb) + " is not " + kPodsActions);
    }
    options_.verb =
        verb == "restart" ? roles::ManageVerb::kPodsRestart : roles::ManageVerb::kPodsReplace;
    options_.task = take_task("pods " + verb, arguments);
  }
};

}  // namespace

CommandRow pods_command() {
  return {
      .name = "pods",
      .description = "List, restart or replace the tasks of a running launch",
      .words = "list|restart|replace [TASK]",
      .about = "The launch restarts a task that it stops or kills; the run loses nothing.",
      .examples = {{"disttf pods restart worker-1", "A new process at the same address."}},
      .files = {kSocketFile},
      .reads = {Reads::kRuntime, Reads::kTerminal},
      .see_also = {"status", "update"},
      .make = make_command<PodsCommand>,
  };
}

}  // namespace disttf
