#include "main/commands/launch_flags.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "main/flag_values.h"
#include "main/flags/flag_group.h"
#include "main/flags/run.h"
#include "main/render/deployment.h"
#include "net/wire/text.h"
#include "roles/launch/shell/program_command.h"
#include "run/process/gpus.h"
#include "run/run_config.h"

namespace disttf {
namespace {

// Bounds against typing errors: every task is a process of this machine.
constexpr std::uint64_t kMostStarted = 1000;  // tasks of one job that launch starts
constexpr std::uint64_t kMostGpusOfWorker = 64;

// The value of --control that disables management.
constexpr const char* kNoControl = "none";

using roles::kMaxCount;

void add_tasks_of_launch(CLI::App& app, LaunchFlags& flags) {
  FlagGroup add(app, kLaunchGroup);
  add.number("--ps,-s", flags.ps, "N", 0, kMostStarted, "parameter servers to start");
  add.number("--workers,-w", flags.workers, "N", 0, kMostStarted, "workers to start");
  add.toggle("--chief", flags.chief, "start a separate chief, which also trains");
  add.toggle("--evaluator", flags.evaluator,
             "start an [evaluator](evaluator.md), whose exit does not end the run");
  add.choice(
      "--restart", flags.restart, "NAME", {"on-failure", "never"},
      "`on-failure`: restart tasks that were killed or lost their peers; `never`: end the run");
  add.number(
      "--max_restarts", flags.max_restarts, "N", 0, kMaxCount,
      "most restarts of all tasks together; the evaluator has a separate limit of the same size");
  add.text("--chaos", flags.chaos, "SEED,RATE",
           "`SEED,RATE`: kill or freeze a task at RATE of 1000 steps, chosen by SEED; "
           "implies `--chaos_frames SEED,RATE`")
      ->check(seed_and_rate());
}

void add_task_limits(CLI::App& app, const std::string& prefix, roles::TaskLimits& limits,
                     const char* whom) {
  FlagGroup add(app, kLaunchGroup);
  add.decimal("--" + prefix + "cpus", limits.cpus, "N",
              std::string("CPUs of ") + whom + ", rounded up [all]");
  add.number("--" + prefix + "memory", limits.memory_mib, "MIB", 1, kMostMemoryMib,
             std::string("MiB of private memory of ") + whom + " [no limit]");
}

void check_cpus(const char* flag, const std::optional<double>& cpus) {
  // The bounds of render, so that both commands take the same flags.
  constexpr double kLeast = 0.01;
  constexpr double kMost = 1024;
  if (cpus && !(*cpus >= kLeast && *cpus <= kMost)) {
    render::refuse(flag, render::cpus_text(*cpus), "from 0.01 to 1024");
  }
}

std::optional<std::set<std::size_t>> workers_from(const std::string& text, std::size_t workers) {
  // nullopt: all tasks, including ps, which have no numbers in this list.
  if (text == "*") {
    return std::nullopt;
  }
  std::set<std::size_t> found;
  for (std::string& each : split_at_commas({text})) {
    if (!whole_number(0, workers - 1)(each).empty()) {
      throw std::invalid_argument("--worker_logs: " + net::quoted(text) +
                                  " is not *, nor workers between commas, each from 0 to " +
                                  std::to_string(workers - 1));
    }
    found.insert(std::stoul(each));
  }
  return found;
}

}  // namespace

void add_control_flag(CLI::App& app, std::string& control, const std::string& group,
                      const char* description) {
  FlagGroup add(app, group);
  add.text("--control", control, "PATH", description);
}

void LaunchFlags::add_to(CLI::App& app) {
  FlagGroup add(app, kLaunchGroup);
  add_tasks_of_launch(app, *this);
  add.text("--options", options_file, "FILE",
           "[options file](managing.md#an-options-file) of DC/OS' TensorFlow package, JSON; "
           "the command line wins");
  add_task_limits(app, "", trainer_limits, "each trainer");
  add_task_limits(app, "ps_", ps_limits, "each ps");
  add_control_flag(app, control, kLaunchGroup,
                   "Unix socket for managing the launch, or `none` [one that `status`, `logs`, "
                   "`pods` and `update` find]");
  add.number("--control_port", control_port, "PORT", 0, kMostPort,
             "HTTP port on 127.0.0.1 for managing the launch, with a bearer token in a file; "
             "0: any free port");
}

void LaunchFlags::add_of_command(CLI::App& app) {
  FlagGroup add(app, kCommandGroup);
  add.text("--worker_logs", worker_logs, "N,...|*",
           "workers whose output is shown, as in `1,2`; `*`: all tasks, including ps");
  add.text("--initializer", initializer, "WORDS",
           "run in each task before COMMAND; must exit with 0");
  add.text("--finalizer", finalizer, "WORDS",
           "run in each task after COMMAND, whatever its exit code");
  add.number(
      "--gpus_per_worker", gpus_per_worker, "N", 1, kMostGpusOfWorker,
      "number of [GPUs](operations.md#gpus) of each worker, which sees no others; ps see none "
      "[all tasks see all]");
  add.toggle("--share_gpus", share_gpus,
             "give several workers the same GPUs where there are too few");
  app.footer(
      "\ndisttf launch -w 2 -s 1 -- COMMAND ... runs any program as each of these tasks. In its "
      "words\n"
      "{ps_hosts}, {worker_hosts}, {job_name} and {task_index} are filled in, {{ and }} are "
      "braces;\n"
      "TF_CONFIG and TFMESOS_... say the same. Of the flags above it takes -w, -s, --insecure,\n"
      "--log_format and its own group. With --program the COMMAND is your own training program\n"
      "instead, started by each worker, and all flags but those of models and data apply.");
}

roles::GpuOptions LaunchFlags::gpu_options(const Environment& environment) const {
  if (!gpus_per_worker) {
    if (share_gpus) {
      throw std::invalid_argument("--share_gpus: true has no effect without --gpus_per_worker");
    }
    return {};
  }
  return {.per_worker = *gpus_per_worker,
          .share = share_gpus,
          .list = roles::find_gpus(environment),
          .has_device_order = environment.contains(kDeviceOrder),
          .has_cublas_workspace = environment.contains(kCublasWorkspace)};
}

roles::ProgramOptions LaunchFlags::program_options(const std::vector<std::string>& command,
                                                   const Environment& environment) const {
  // First: workers_from() needs at least one.
  if (workers == 0) {
    throw std::invalid_argument(
        "--workers: must be at least 1; the launch exits when the workers do (got 0)");
  }
  const auto words_of = [](const char* field, const std::string& text) {
    return text.empty() ? std::vector<std::string>() : roles::split_words(field, text);
  };
  roles::ProgramOptions options;
  options.ps = ps;
  options.workers = workers;
  options.command = command;
  options.initializer = words_of("--initializer", initializer);
  options.finalizer = words_of("--finalizer", finalizer);
  options.worker_logs = workers_from(worker_logs, options.workers);
  options.search_path = search_path(environment);
  roles::validate(options);
  return options;
}

std::optional<roles::ControlOptions> LaunchFlags::control_options(
    const Environment& environment) const {
  if (control == kNoControl) {
    if (control_port) {
      throw std::invalid_argument("--control_port: " + std::to_string(*control_port) +
                                  " is not allowed with --control none");
    }
    return std::nullopt;
  }
  return roles::ControlOptions{
      .directory = control_directory(environment), .socket = control, .port = control_port};
}

void LaunchFlags::check_limits() const {
  check_cpus("cpus", trainer_limits.cpus);
  check_cpus("ps_cpus", ps_limits.cpus);
}

void check_launch_flags(const CLI::App& app, const ProgramFlags& program, bool has_command) {
  // Flags that apply with and without a COMMAND.
  static const std::set<std::string> kOfBoth = {"ps",       "workers",    "config",  "help",
                                                "help-all", "log_format", "insecure"};
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty() ||
        kOfBoth.contains(option->get_lnames().front())) {
      continue;
    }
    const std::string name = "--" + option->get_lnames().front();
    const bool is_of_command = option->get_group() == kCommandGroup;
    if (is_of_command && !has_command) {
      throw std::invalid_argument(name + ": needs a COMMAND after --");
    }
    const bool assigns_gpus = name == "--gpus_per_worker" || name == "--share_gpus";
    if (is_of_command && program.program && !assigns_gpus) {
      throw std::invalid_argument(name + ": has no effect with --program");
    }
    if (program.program) {
      continue;
    }
    // Rejected rather than ignored: a training flag before -- looks as if the program received it.
    if (!is_of_command && has_command) {
      throw std::invalid_argument(
          name + ": has no effect on a COMMAND; put the COMMAND's own flags after --");
    }
  }
}

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
