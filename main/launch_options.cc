#include "main/launch_options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

#include "main/common_options.h"
#include "main/credential_flags.h"
#include "main/flag_values.h"
#include "main/launch_command.h"
#include "main/metrics_flags.h"
#include "main/options_file.h"
#include "main/page_flags.h"
#include "main/parse_flags.h"
#include "main/program_flags.h"
#include "main/render/dcos_options.h"
#include "main/render/deployment.h"
#include "main/training_flags.h"
#include "net/wire/text.h"
#include "roles/launch/shell/program_command.h"

namespace disttf {
namespace {

// The value of --control that disables management.
constexpr const char* kNoControl = "none";

void add_limits(CLI::App& app, const std::string& prefix, roles::TaskLimits& limits,
                const char* whom) {
  app.add_option("--" + prefix + "cpus", limits.cpus,
                 std::string("CPUs of ") + whom + ", rounded up [all]")
      ->type_name("N")
      ->check(number_above_zero())
      ->group(kLaunchGroup);
  app.add_option("--" + prefix + "memory", limits.memory_mib,
                 std::string("MiB of private memory of ") + whom + " [no limit]")
      ->type_name("MIB")
      ->transform(whole_number(1, kMostMemoryMib))
      ->group(kLaunchGroup);
}

void check_cpus(const char* flag, const std::optional<double>& cpus) {
  // The bounds of render, so that both commands take the same flags.
  constexpr double kLeast = 0.01;
  constexpr double kMost = 1024;
  if (cpus && !(*cpus >= kLeast && *cpus <= kMost)) {
    render::refuse(flag, render::cpus_text(*cpus), "from 0.01 to 1024");
  }
}

}  // namespace

void add_control_flag(CLI::App& app, Flags& flags, const std::string& group,
                      const char* description) {
  app.add_option("--control", flags.control, description)->type_name("PATH")->group(group);
}

void add_launch_resources(CLI::App& app, Flags& flags) {
  app.add_option("--options", flags.launch_options,
                 "[options file](managing.md#an-options-file) of DC/OS' TensorFlow package, JSON; "
                 "the command line wins")
      ->type_name("FILE")
      ->group(kLaunchGroup);
  add_limits(app, "", flags.trainer_limits, "each trainer");
  add_limits(app, "ps_", flags.ps_limits, "each ps");
  add_control_flag(app, flags, kLaunchGroup,
                   "Unix socket for managing the launch, or `none` [one that `status`, `logs`, "
                   "`pods` and `update` find]");
  app.add_option("--control_port", flags.control_port,
                 "HTTP port on 127.0.0.1 for managing the launch, with a bearer token in a file; "
                 "0: any free port")
      ->type_name("PORT")
      ->transform(whole_number(0, kMostPort))
      ->group(kLaunchGroup);
}

std::string control_directory(const net::Environment& environment) {
  const auto found = environment.find("XDG_RUNTIME_DIR");
  // All users share /tmp, hence the number of the user. ControlSocket refuses a directory of
  // another user.
  return found != environment.end() && found->second.starts_with("/")
             ? found->second + "/disttf"
             : "/tmp/disttf-" + std::to_string(geteuid());
}

roles::LaunchOptions launch_options(const CLI::App& app, const Flags& flags, std::size_t ps,
                                    std::size_t workers, const std::vector<std::string>& command) {
  // Here, and not only of the command line: an options file sets flags, too.
  check_program_flags(app, flags, Command::kLaunch, !command.empty());
  // The flag allows 0 workers, because a --chief can train alone; only here both are known.
  const std::size_t trainers = workers + (flags.launch_chief ? 1 : 0);
  if (trainers == 0) {
    throw std::invalid_argument("--workers: must be at least 1 without --chief (got 0)");
  }
  if (ps == 0) {
    throw std::invalid_argument("--ps: must be at least 1 (got 0)");
  }
  std::optional<roles::ChaosOptions> chaos;
  if (!flags.chaos.empty()) {
    chaos = read_seed_and_rate(flags.chaos);
    if (flags.restart == "never") {
      throw std::invalid_argument(
          "--chaos: not allowed with --restart never; killed tasks must be restarted");
    }
  }
  check_checkpoint_flags(flags);
  if (!flags.keep_best.empty() && !flags.launch_evaluator) {
    throw std::invalid_argument("--keep_best: " + net::quoted(flags.keep_best) +
                                " has no effect without --evaluator");
  }
  if (!flags.keep_best.empty() && flags.train_dir.empty()) {
    throw std::invalid_argument(
        "--keep_best: " + net::quoted(flags.keep_best) +
        " is not allowed without --train_dir, the directory of the checkpoints");
  }
  // Report a wrong flag once, not from each child.
  static_cast<void>(run_config(flags, ps, most_trainers(flags, workers, flags.launch_chief)));
  std::vector<std::string> task_arguments = arguments_for_children(app);
  // Tasks of one machine cannot share a port or a file: the launcher gives each its own.
  std::erase_if(task_arguments, is_metrics_word);
  // A --chaos_frames of the user is among the arguments already and wins.
  if (chaos && flags.chaos_frames.empty()) {
    task_arguments.push_back("--chaos_frames=" + flags.chaos);
  }
  return {.ps = ps,
          .workers = workers,
          .chief = flags.launch_chief,
          .evaluator = flags.launch_evaluator,
          .restart = {.on_failure = flags.restart == "on-failure",
                      .max_restarts = flags.max_restarts,
                      .programs_end = flags.program ? std::optional(std::chrono::seconds(
                                                          flags.program_end_timeout_s))
                                                    : std::nullopt},
          .chaos = chaos,
          .task_arguments = std::move(task_arguments),
          .program_arguments = program_arguments(flags),
          .program_command = command,
          .ps_limits = flags.ps_limits,
          .trainer_limits = flags.trainer_limits,
          .metrics = flags.metrics};
}

void check_launched_program(const roles::LaunchOptions& options,
                            const net::Environment& environment) {
  const std::string path = value_of(environment, "PATH");
  // The ports are not known yet; no program's name depends on them.
  static_cast<void>(roles::find_command("COMMAND", options.program_command, {}, {},
                                        path.empty() ? kUsualPath : path));
}

namespace {

void check_limits(const Flags& flags) {
  check_cpus("cpus", flags.trainer_limits.cpus);
  check_cpus("ps_cpus", flags.ps_limits.cpus);
}

// Sets what the command line leaves open: the counts and limits in `flags`, the training flags of
// `app`. Returns a note for each option that has no effect.
std::vector<std::string> take_options(CLI::App& app, Flags& flags, const std::string& text) {
  const render::DcosOptions options = render::read_dcos_options(text);
  std::vector<std::string> notes = options.warnings;
  // Only the command line wins over the file; a default does not.
  const auto is_given = [&app](const char* flag) { return app.get_option(flag)->count() > 0; };
  const auto take_count = [&](const char* flag, const char* name, std::size_t& place,
                              std::size_t count) {
    if (!is_given(flag)) {
      place = count;
    } else if (place != count) {
      notes.push_back("--options: " + std::string(name) + " is " + std::to_string(count) +
                      " and has no effect because " + flag + " is given");
    }
  };
  take_count("--ps", "parameter_server.count", flags.launch_ps, options.ps.count);
  take_count("--workers", "worker.count", flags.launch_workers, options.workers.count);
  const auto take_limits = [&](const std::string& prefix, roles::TaskLimits& limits,
                               const render::DcosTasks& tasks) {
    if (!is_given(("--" + prefix + "cpus").c_str())) {
      limits.cpus = tasks.cpus;
    }
    if (!is_given(("--" + prefix + "memory").c_str())) {
      limits.memory_mib = tasks.memory_mib;
    }
  };
  take_limits("", flags.trainer_limits, options.workers);
  take_limits("ps_", flags.ps_limits, options.ps);
  // The directory of the file comes after its job_context: set_training_flag() keeps the first
  // value, so train_dir of the job_context wins.
  for (const auto& [key, value] : options.flags) {
    set_training_flag(app, key, value);
  }
  if (options.tensorboard) {
    notes.emplace_back(
        "--options: service.use_tensorboard has no effect, because launch starts no other program; "
        "`tensorboard --logdir` shows service.shared_filesystem");
  }
  if (!options.train_dir.empty()) {
    set_training_flag(app, "train_dir", options.train_dir);
  }
  return notes;
}

// nullopt: the launch cannot be managed.
std::optional<roles::ControlOptions> control_options(const Flags& flags,
                                                     const net::Environment& environment) {
  if (flags.control == kNoControl) {
    if (flags.control_port) {
      throw std::invalid_argument("--control_port: " + std::to_string(*flags.control_port) +
                                  " is not allowed with --control none");
    }
    return std::nullopt;
  }
  return roles::ControlOptions{.directory = control_directory(environment),
                               .socket = flags.control,
                               .port = flags.control_port};
}

// The options of a launch from its words, its options file, and the updates received since.
roles::LaunchOptions reconsidered(const std::vector<std::string>& words,
                                  const std::vector<std::string>& command,
                                  const roles::LaunchUpdate& update) {
  // Fresh values for every update: leftovers of an earlier one could not be distinguished from
  // given flags.
  Flags flags;
  const std::unique_ptr<CLI::App> app = make_app(Command::kLaunch, flags);
  // Parsed again, so that an update passes the checks of a command line.
  static_cast<void>(parse_flags(*app, words));
  if (update.workers) {
    CLI::Option* const workers = app->get_option("--workers");
    // The words may have a value already.
    workers->clear();
    workers->add_result(std::to_string(*update.workers));
    // CLI11 has parsed already, so the added value reaches `flags` only by this call, which also
    // checks it.
    workers->run_callback();
  }
  std::vector<std::string> notes;
  if (update.options) {
    notes = take_options(*app, flags, *update.options);
  }
  // After the options file, whose limits have passed no flag's check.
  check_limits(flags);
  roles::LaunchOptions options =
      launch_options(*app, flags, flags.launch_ps, flags.launch_workers, command);
  options.notes = std::move(notes);
  return options;
}

// The options with the GPUs of their trainers. Throws std::invalid_argument if these are too few.
roles::LaunchOptions with_gpus(roles::LaunchOptions options, const roles::GpuOptions& gpus) {
  options.gpus = gpus;
  roles::check_gpus(gpus, options.workers + (options.chief ? 1 : 0));
  return options;
}

}  // namespace

roles::LaunchOptions manageable_launch(const std::vector<std::string>& words,
                                       const std::vector<std::string>& command, const Flags& flags,
                                       const net::Environment& environment) {
  // Once: trainers that an update adds get others of the same list.
  const roles::GpuOptions gpus = gpu_options(flags, environment);
  roles::LaunchUpdate given;
  if (!flags.launch_options.empty()) {
    // The text is kept, not the path: an update of the workers must not pick up a file that has
    // changed since the start.
    given.options = read_options_text(flags.launch_options);
  }
  roles::LaunchOptions options = with_gpus(reconsidered(words, command, given), gpus);
  check_launched_program(options, environment);
  options.control = control_options(flags, environment);
  options.page = page_options(flags);
  options.secret = secret_of_launch(flags, environment);
  options.reconsider = [words, command, given, gpus](const roles::LaunchUpdate& update) {
    roles::LaunchUpdate all = update;
    // An update of the workers alone keeps the options of the start.
    if (!all.options) {
      all.options = given.options;
    }
    try {
      return with_gpus(reconsidered(words, command, all), gpus);
      // The launch reports std::invalid_argument to the client of the update and continues as it
      // was.
    } catch (const CLI::ParseError& error) {
      throw std::invalid_argument(error.what());
    }
  };
  return options;
}

}  // namespace disttf
