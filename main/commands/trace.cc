#include <CLI/CLI.hpp>

#include "main/commands/manage.h"
#include "main/commands/registry.h"
#include "main/flags/flag_group.h"
#include "run/monitor/core/step_sampling.h"

namespace disttf {
namespace {

class TraceCommand : public ManagementCommand {
 public:
  TraceCommand() : ManagementCommand(roles::ManageVerb::kTrace) {}

 private:
  void add_own_options(CLI::App& app) override {
    FlagGroup add(app, kManagement);
    add.number("--steps,-n", options_.trace_steps, "N", 1, roles::StepWindow::kMost,
               "`trace`: number of steps");
    add.text("--output,-o", options_.trace_output, "FILE.json",
             "`trace`: output file [TRAIN_DIR/traces/trace-STEP.json, or a temporary one]");
    app.footer(
        "\ndisttf trace -o trace.json      then open the file at ui.perfetto.dev\n"
        "kill -USR2 PID                  of the chief: the same of 50 steps, without a launch");
  }
};

}  // namespace

CommandRow trace_command() {
  return {
      .name = "trace",
      .description = "Record a timeline of some steps of all tasks, for ui.perfetto.dev",
      .about = "All tasks measure the stages of the same steps; the chief writes the timeline.",
      .examples = {{"disttf trace --steps 50 -o trace.json",
                    "Then open the file at ui.perfetto.dev."}},
      .files = {kSocketFile, {"TRAIN_DIR/traces/trace-*.json", "The timeline, without -o."}},
      .reads = {Reads::kRuntime, Reads::kTerminal},
      .see_also = {"top"},
      .make = make_command<TraceCommand>,
  };
}

}  // namespace disttf
