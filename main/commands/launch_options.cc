#include "main/commands/launch_options.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <utility>

#include "main/flag_values.h"
#include "main/flags/passed_on.h"
#include "net/wire/text.h"
#include "roles/launch/shell/program_command.h"

namespace disttf {
namespace {

// Throws std::invalid_argument if flags of the launch and of its run contradict each other.
void check_launched(const LaunchedFlags& flags) {
  const auto& [launch, run, program] = flags;
  if (!launch.chaos.empty() && launch.restart == "never") {
    throw std::invalid_argument(
        "--chaos: not allowed with --restart never; killed tasks must be restarted");
  }
  check_places(run.checkpoints, run.output);
  const std::string& keep_best = run.output.keep_best;
  if (!keep_best.empty() && !launch.evaluator) {
    throw std::invalid_argument("--keep_best: " + net::quoted(keep_best) +
                                " has no effect without --evaluator");
  }
  if (!keep_best.empty() && run.checkpoints.train_dir.empty()) {
    throw std::invalid_argument(
        "--keep_best: " + net::quoted(keep_best) +
        " is not allowed without --train_dir, the directory of the checkpoints");
  }
}

}  // namespace

roles::LaunchOptions launch_options(const CLI::App& app, const LaunchedFlags& flags, std::size_t ps,
                                    std::size_t workers, const std::vector<std::string>& command) {
  const auto& [launch, run, program] = flags;
  // The flag allows 0 workers, because a --chief can train alone; only here both are known.
  if (workers == 0 && !launch.chief) {
    throw std::invalid_argument("--workers: must be at least 1 without --chief (got 0)");
  }
  if (ps == 0) {
    throw std::invalid_argument("--ps: must be at least 1 (got 0)");
  }
  check_launched(flags);
  // Report a wrong flag once, not from each child.
  static_cast<void>(run.run_config(ps, run.training.most_trainers(workers, launch.chief)));
  std::vector<std::string> task_arguments = arguments_for_children(app);
  // Tasks of one machine cannot share a port or a file: the launcher gives each its own.
  std::erase_if(task_arguments, is_metrics_word);
  std::optional<roles::ChaosOptions> chaos;
  if (!launch.chaos.empty()) {
    chaos = read_seed_and_rate(launch.chaos);
    // A --chaos_frames of the user is among the arguments already and wins.
    if (run.testing.chaos_frames.empty()) {
      task_arguments.push_back("--chaos_frames=" + launch.chaos);
    }
  }
  const std::optional<std::chrono::seconds> programs_end =
      program.program ? std::optional(std::chrono::seconds(program.rules.timeouts.end_s))
                      : std::nullopt;
  return {.ps = ps,
          .workers = workers,
          .chief = launch.chief,
          .evaluator = launch.evaluator,
          .restart = {.on_failure = launch.restart == "on-failure",
                      .max_restarts = launch.max_restarts,
                      .programs_end = programs_end},
          .chaos = chaos,
          .task_arguments = std::move(task_arguments),
          .program_arguments = program.arguments(),
          .program_command = command,
          .ps_limits = launch.ps_limits,
          .trainer_limits = launch.trainer_limits,
          .metrics = run.metrics};
}

void log_as_launch(roles::LogOptions& log) {
  log.task = "launch";
  log.name_task = false;
}

void check_launched_program(const roles::LaunchOptions& options, const Environment& environment) {
  // The ports are not known yet; no program's name depends on them.
  static_cast<void>(
      roles::find_command("COMMAND", options.program_command, {}, {}, search_path(environment)));
}

}  // namespace disttf
