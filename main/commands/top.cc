#include <CLI/CLI.hpp>

#include "main/commands/manage.h"
#include "main/commands/registry.h"
#include "main/flags/flag_group.h"

namespace disttf {
namespace {

class TopCommand : public ManagementCommand {
 public:
  TopCommand() : ManagementCommand(roles::ManageVerb::kTop) {}

 private:
  void add_own_options(CLI::App& app) override {
    FlagGroup add(app, kManagement);
    add.decimal("--every", every_s_, "SECONDS", "`top`: seconds between updates");
    add.toggle("--once", options_.once, "`top`: print once");
    app.footer(
        "\ndisttf top                  until the run ends, or q\n"
        "disttf top --once --json    one JSON object");
  }

  void complete(roles::ManageOptions& options) override {
    options.every = milliseconds_of(every_s_);
  }

  double every_s_ = 2;
};

}  // namespace

CommandRow top_command() {
  return {
      .name = "top",
      .description = "Show live what each task of a running launch does",
      .about =
          "Steps, waiting times, memory, CPU and network of each task, and which task delays "
          "the steps.",
      .examples = {{"disttf top --once --json", "Once, for a program."}},
      .files = {kSocketFile},
      .reads = {Reads::kRuntime, Reads::kTerminal},
      .see_also = {"status", "trace"},
      .make = make_command<TopCommand>,
  };
}

}  // namespace disttf
