#include "main/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "main/command_words.h"
#include "main/commands/launch_options.h"
#include "main/commands/resolution_text.h"
#include "main/commands/task_actions.h"
#include "main/completion.h"
#include "main/flag_values.h"
#include "main/flags/passed_on.h"
#include "main/launch_command.h"
#include "main/libraries.h"
#include "main/model_command.h"
#include "main/parse_flags.h"
#include "main/plot_command.h"
#include "main/verify_command.h"
#include "main/version.h"
#include "main/word_commands.h"
#include "net/wire/text.h"
#include "roles/launch/shell/control_client.h"
#include "roles/launch/shell/own_program.h"
#include "roles/launch/shell/program_launcher.h"
#include "roles/process/machine.h"
#include "roles/run/outcome.h"
#include "roles/servers/shell/plus.h"
#include "roles/servers/shell/task_server.h"

namespace disttf {
namespace {

// Long names of the options that the command line or the config file sets.
std::set<std::string> given_options(const CLI::App& app) {
  std::set<std::string> given;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() > 0 && !option->get_lnames().empty()) {
      // The first long name is the one of the settings' table, whichever spelling was used:
      // contradiction() looks flags up by it.
      given.insert(option->get_lnames().front());
    }
  }
  return given;
}

// A JSON line has the task's name in a field; launch's text lines carry it in the message.
roles::LogOptions launch_log(roles::LogOptions log) {
  log.task = "launch";
  log.name_task = false;
  return log;
}

roles::OnFinish on_finish_from(const std::string& name) {
  return name == "idle" ? roles::OnFinish::kIdle : roles::OnFinish::kExit;
}

roles::Task task_from(const Flags& flags, const Environment& environment,
                      net::ClusterAndTask found) {
  const RunFlags& run = flags.run;
  std::shared_ptr<net::Credentials> credentials =
      // Before the cluster is moved from below: the credentials depend on who else is in it.
      run.network.credentials.of_task(environment, found.cluster, found.task,
                                      flags.inherited.is_child());
  return {.cluster = std::move(found.cluster),
          .self = found.task,
          .incarnation = roles::new_incarnation(),
          .timeouts = run.timeouts.options(),
          .faults = run.testing.chaos_frames.empty() ? roles::ChaosOptions{}
                                                     : read_seed_and_rate(run.testing.chaos_frames),
          .transport = run.network.transport_option(),
          .on_finish = on_finish_from(run.output.on_finish),
          .threads = run.network.threads,
          .listen_fd = flags.inherited.listen_fd,
          .credentials = std::move(credentials)};
}

roles::TrainerOptions trainer_options(const Flags& flags, const Environment& environment,
                                      net::ClusterAndTask found, std::set<std::string> given) {
  roles::TrainerOptions options;
  options.task = task_from(flags, environment, std::move(found));
  check_places(flags.run.checkpoints, flags.run.output);
  const net::Cluster& cluster = options.task.cluster;
  // The driver trains as the chief, and is in no list.
  const std::size_t drivers = flags.existing_servers ? 1 : 0;
  // The counts come from the cluster found, not from flags: a resolver may have derived them from
  // the environment.
  options.config = flags.run.run_config(cluster.ps.size(), cluster.trainer_count() + drivers);
  // A trainer compares these flags with the configuration that the chief publishes, and exits if
  // they contradict it. Defaults are not compared.
  options.explicit_flags = std::move(given);
  options.data = flags.run.data.options(environment);
  options.explicit_flags.erase("dataset");  // compared separately, by the data that was opened
  if (!flags.run.training.settings.has("isa")) {
    options.explicit_flags.erase("isa");  // `auto` depends on the CPU
  }
  options.log_every = flags.run.output.log_every;
  options.print_weights_hash = flags.run.output.print_weights_hash;
  options.print_classes = flags.run.output.print_classes;
  options.metrics_file = flags.run.output.metrics_file;
  options.max_injected_delay = std::chrono::milliseconds(flags.run.testing.debug_delay_ms);
  options.checkpoint = flags.run.checkpoints.options();
  options.summaries = {.directory = flags.run.summary_directory(),
                       .every = flags.run.output.summary_every,
                       .histogram_every = flags.run.output.histogram_every};
  options.page = flags.page.options(flags.run.metrics.files);
  options.progress_fd = flags.inherited.progress_fd;
  options.program_fd = flags.program.fd;
  options.program_timeout = std::chrono::seconds(flags.program.timeouts.step_s);
  options.check_gradients = flags.program.check_gradients;
  return options;
}

// `found` has no cluster if the evaluator only has a --train_dir.
std::unique_ptr<Action> run_evaluator(const Flags& flags, const Environment& environment,
                                      net::ClusterAndTask found, std::set<std::string> given) {
  roles::EvaluatorOptions run{.trainer = {},
                              .every = std::chrono::seconds(flags.run.output.evaluator_secs)};
  if (flags.run.checkpoints.train_dir.empty() && found.cluster.ps.empty()) {
    throw std::invalid_argument(
        "--train_dir: missing; an evaluator needs the directory of a run's checkpoints, or "
        "--ps_hosts and --worker_hosts of a running cluster");
  }
  if (!flags.run.output.keep_best.empty() && flags.run.checkpoints.train_dir.empty()) {
    throw std::invalid_argument(
        "--keep_best: " + net::quoted(flags.run.output.keep_best) +
        " is not allowed without --train_dir, the directory of the checkpoints");
  }
  run.keep_best = roles::best_metric_from_name(flags.run.output.keep_best);
  roles::TrainerOptions& options = run.trainer;
  options.task = task_from(flags, environment, std::move(found));
  // Not run_config(), which derives what depends on the counts of ps and trainers: an evaluator of
  // checkpoints has no cluster.
  options.config = flags.run.training.settings.run;
  options.explicit_flags = std::move(given);
  options.data = flags.run.data.options(environment);
  options.print_weights_hash = flags.run.output.print_weights_hash;
  options.print_classes = flags.run.output.print_classes;
  options.metrics_file = flags.run.output.metrics_file;
  options.checkpoint.train_dir = flags.run.checkpoints.train_dir;
  options.summaries.directory = flags.run.summary_directory();
  options.progress_fd = flags.inherited.progress_fd;
  return std::make_unique<RunEvaluator>(std::move(run), flags.run.metrics);
}

// The job that the command implies; nullopt if it implies none.
std::optional<net::Job> job_of(Command command) {
  switch (command) {
    case Command::kPs:
      return net::Job::kPs;
    case Command::kWorker:
      return net::Job::kWorker;
    case Command::kChief:
      return net::Job::kChief;
    case Command::kEvaluator:
      return net::Job::kEvaluator;
    default:
      return std::nullopt;
  }
}

// Throws std::invalid_argument, as ClusterFlags does.
net::ClusterFlags cluster_flags(Command command, const Flags& flags) {
  net::ClusterFlags wanted = flags.cluster.for_resolvers(job_of(command));
  // launch passes a child's identity by flags. The child's environment may describe the cluster
  // that launch itself runs in, so no other resolver is tried.
  if (flags.inherited.is_child() && wanted.resolver == "auto") {
    wanted.resolver = "flags";
  }
  if (flags.run.training.max_workers != 0) {
    wanted.max_workers = flags.run.training.max_workers;
  }
  return wanted;
}

// Whether no resolver runs: an evaluator with --train_dir and no lists reads checkpoints alone.
bool needs_no_cluster(Command command, const Flags& flags) {
  return command == Command::kEvaluator && !flags.run.checkpoints.train_dir.empty() &&
         !flags.cluster.has_lists();
}

// train --existing_servers
std::unique_ptr<Action> drive_servers(const Flags& flags, const Environment& environment,
                                      std::set<std::string> given) {
  const auto refuse = [](const std::string& flag, const std::string& why) {
    throw std::invalid_argument("--" + flag + ": not allowed with --existing_servers, " + why);
  };
  for (const char* flag : {"job_name", "task_index", "chief_host"}) {
    if (given.contains(flag)) {
      refuse(flag, "which is the chief itself and drives all listed tasks");
    }
  }
  // Not by its value: a default is no wish of the user.
  if (given.contains("max_workers")) {
    refuse("max_workers", "which trains only with the listed workers");
  }
  if (flags.run.checkpoints.sharded) {
    refuse("sharded_checkpoint", "whose servers write no files");
  }
  if (flags.run.output.on_finish == "idle") {
    refuse("on_finish idle", "whose exit ends the run on the servers");
  }
  if (given.contains("data")) {
    refuse("data", "whose servers support only named data sets");
  }
  net::ClusterAndTask found;
  found.cluster = flags.cluster.find_lists(environment);
  // The driver leads the listed cluster as its chief, and is itself in no list.
  found.task = {.job = net::Job::kChief, .index = 0};
  return std::make_unique<RunDriver>(
      trainer_options(flags, environment, std::move(found), std::move(given)), flags.run.metrics);
}

roles::PlusOptions plus_options(const Flags& flags, const Environment& environment) {
  net::Cluster cluster = flags.cluster.find_lists(environment);
  std::shared_ptr<net::Credentials> credentials = flags.run.network.credentials.of_task(
      environment, cluster, {.job = net::Job::kEvaluator, .index = 0});
  return {.cluster = std::move(cluster),
          .credentials = std::move(credentials),
          .verbose = flags.verbose,
          .wait = std::chrono::seconds(flags.wait_s),
          .heartbeat_timeout = flags.run.timeouts.options().heartbeat_timeout};
}

// The words of this process and its COMMAND, if it has one.
struct Words {
  std::vector<std::string> before;  // "--"; with the command's name
  std::vector<std::string> command;
};

// `task` has passed the checks of a trainer; only its cluster and its identity are used.
roles::OwnProgramOptions own_program_options(const Flags& flags, const Environment& environment,
                                             const roles::Task& task, const Words& words) {
  roles::OwnProgramOptions options{
      .cluster = task.cluster,
      .self = task.self,
      .program = roles::find_command("COMMAND", words.command, task.cluster, task.self,
                                     search_path(environment)),
      .has_spare = flags.program.spare,
      .end_timeout = std::chrono::seconds(flags.program.timeouts.end_s),
      .task_words = words.before,
      .listen_fd = flags.inherited.listen_fd,
      .progress_fd = flags.inherited.progress_fd};
  // A child gets no TF_CONFIG but one of its variables; the task needs that of this process.
  if (const auto found = environment.find("TF_CONFIG"); found != environment.end()) {
    options.task_variables.push_back("TF_CONFIG=" + found->second);
  }
  return options;
}

// Whether this process starts a task and its program; a ps has none.
bool is_supervisor(const Flags& flags, const net::TaskId& task) {
  return flags.program.program && flags.program.fd < 0 && task.job != net::Job::kPs;
}

// A launch that `train` makes where there is no cluster.
std::unique_ptr<Action> run_alone(const CLI::App& app, const Flags& flags,
                                  const Environment& environment, const Words& words) {
  roles::LaunchOptions options = launch_options(
      app, {.launch = {}, .run = flags.run, .program = flags.program}, 1, 1, words.command);
  options.page = flags.page.options(flags.run.metrics.files);
  options.secret = flags.run.network.credentials.of_launch(environment);
  check_launched_program(options, environment);
  return run_launch(std::move(options));
}

// Finds the cluster and sets the action: ps, worker, chief, evaluator, train or server.
void start_task(Command command, const CLI::App& app, const Flags& flags,
                const Environment& environment, const Words& words, Invocation& invocation) {
  // First: an evaluator of checkpoints must also start where the environment describes an unrelated
  // or malformed cluster.
  if (needs_no_cluster(command, flags)) {
    const net::TaskId self{.job = net::Job::kEvaluator, .index = 0};
    invocation.log.task = net::task_name(self);
    invocation.attempts = read_attempts(flags.run.testing.debug_attempts);
    invocation.action = run_evaluator(
        flags, environment, {.cluster = {}, .task = self, .warnings = {}}, given_options(app));
    return;
  }
  net::Resolution resolution = net::find_cluster(cluster_flags(command, flags), environment);
  if (flags.program.fd < 0) {  // else the supervisor, which started this task, has logged both
    // Kept, not logged: the log is set up after parsing, with the flags that are being parsed.
    invocation.warnings = std::move(resolution.warnings);
    if (flags.inherited.listen_fd < 0) {  // else launch has logged it
      invocation.summary = summary(resolution);
    }
  }
  if (!resolution.found && command == Command::kServer) {
    throw std::invalid_argument(
        "--job_name: missing; a server needs --job_name, --task_index, --ps_hosts and "
        "--worker_hosts, or an environment that describes a cluster");
  }
  // The tasks of a local run would idle after the result, and the launch would never end.
  if (!resolution.found && flags.run.output.on_finish == "idle") {
    throw std::invalid_argument("--on_finish: \"idle\" is not allowed without a cluster");
  }
  if (!resolution.found) {
    // No cluster: train on this machine, as orchestrators expect of a job with a single task.
    invocation.log = launch_log(invocation.log);
    invocation.action = run_alone(app, flags, environment, words);
    return;
  }
  const net::TaskId& task = resolution.found->task;
  invocation.log.task = net::task_name(task);
  // A server has no training options of its own: the driver sends each run's, so only the words for
  // its tasks are kept.
  if (command == Command::kServer) {
    invocation.action = run_with(
        roles::TaskServerOptions{
            .task = task_from(flags, environment, std::move(*resolution.found)),
            .version = "disttf " + std::string(kVersion),
            .task_arguments = arguments_for_tasks(app)},
        roles::run_task_server, roles::ProcessKind::kLauncher);
    return;
  }
  if (task.job == net::Job::kEvaluator) {
    if (flags.program.program) {
      throw std::invalid_argument(
          "--program: not allowed for an evaluator, which evaluates only built-in models");
    }
    invocation.attempts = read_attempts(flags.run.testing.debug_attempts);
    invocation.action =
        run_evaluator(flags, environment, std::move(*resolution.found), given_options(app));
    return;
  }
  // Checked here: only the resolved cluster shows which task is the chief.
  if (flags.page.page && !resolution.found->cluster.is_chief(task)) {
    throw std::invalid_argument("--page: only the chief serves it, and this task is " +
                                invocation.log.task);
  }
  const bool has_program = is_supervisor(flags, task);
  roles::TrainerOptions options =
      trainer_options(flags, environment, std::move(*resolution.found), given_options(app));
  // After the checks of a trainer: the supervisor reports a wrong flag before anything starts.
  if (has_program) {
    invocation.action = run_with(own_program_options(flags, environment, options.task, words),
                                 roles::run_own_program, roles::ProcessKind::kPrograms);
  } else {
    invocation.attempts = read_attempts(flags.run.testing.debug_attempts);
    invocation.action = std::make_unique<RunTask>(std::move(options), flags.run.metrics);
  }
}

std::unique_ptr<Action> print_version(std::span<const std::string> words) {
  if (words.empty()) {
    return std::make_unique<Print>("disttf " + std::string(kVersion) + "\n");
  }
  if (words.size() == 1 && words.front() == "--verbose") {
    return std::make_unique<Print>(version_in_full());
  }
  throw std::invalid_argument("--version: takes only --verbose, not \"" + words.back() + "\"");
}

// The output that needs no command: the version, the help, or, with neither arguments nor a task's
// environment, the help with exit code 2. Null: a command is to be parsed.
std::unique_ptr<Action> print_without_command(const std::vector<std::string>& arguments,
                                              const Environment& environment) {
  // Without arguments, a container of an orchestrator is a task if TF_CONFIG or TFMesos describes
  // one; at a terminal the user needs the help.
  if (arguments.empty()) {
    return net::is_task_environment(environment)
               ? nullptr
               : std::make_unique<Print>(top_level_help(), roles::kUsage);
  }
  if (arguments.front() == "--version") {
    return print_version(std::span(arguments).subspan(1));
  }
  if (arguments.front() == "--help" || arguments.front() == "-h" ||
      arguments.front() == "--help-all") {
    return std::make_unique<Print>(top_level_help());
  }
  if (arguments.front() == "help") {
    return std::make_unique<Print>(help_of(std::span(arguments).subspan(1)));
  }
  // The completion scripts of the shells call this command.
  if (arguments.front() == kCompleteCommand) {
    // A function, so that only words that name a task cost a connection to the running launches.
    const auto tasks = [&environment](const std::string& socket) {
      return roles::running_tasks(socket, control_directory(environment));
    };
    return std::make_unique<Print>(complete_words(std::span(arguments).subspan(1), tasks));
  }
  return nullptr;
}

}  // namespace

Invocation parse_command_line(std::span<const std::string> given_arguments,
                              const Environment& environment) {
  std::vector<std::string> arguments(given_arguments.begin(), given_arguments.end());
  Invocation invocation;
  // Before take_command(), which takes a leading flag such as --version for one of train.
  if (std::unique_ptr<Action> print = print_without_command(arguments, environment)) {
    invocation.action = std::move(print);
    return invocation;
  }
  const Command command = take_command(arguments);
  // Commands with positional words remove these before the flags are parsed; the parser below
  // allows no word without a flag.
  if (std::optional<Invocation> other = parse_word_command(command, arguments, environment)) {
    return *std::move(other);
  }
  const Command task_command =
      command == Command::kResolve ? take_resolve_word(arguments) : command;
  Flags flags;
  const std::unique_ptr<CLI::App> app = make_app(command, flags);
  // Before the flags are parsed: the words after -- belong to the COMMAND.
  const std::optional<std::vector<std::string>> launched =
      takes_command(command) ? take_launched_command(arguments, name_of_command(command))
                             : std::nullopt;
  const Words words{.before = std::vector<std::string>(given_arguments.begin(),
                                                       std::ranges::find(given_arguments, "--")),
                    .command = launched.value_or(std::vector<std::string>())};
  if (auto help = parse_flags(*app, arguments)) {
    invocation.action = std::make_unique<Print>(std::move(*help));
    return invocation;
  }
  // Before any role is chosen, so that a wrong address flag is reported the same way for each.
  check_addresses(flags.run.metrics, flags.page);
  if (command == Command::kVerify) {
    invocation.log = flags.log.options();
    if (app->count("--log_level") == 0) {  // else the log repeats what the checks print
      invocation.log.level = roles::LogLevel::kWarning;
    }
    invocation.action = verify_program(verify_options(flags, words.command, environment));
    return invocation;
  }
  if (command == Command::kLaunch) {
    check_program_of_launch(*app, flags.program, flags.launch, launched.has_value());
  } else if (takes_command(command)) {
    flags.program.check_command(name_of_command(command), launched.has_value());
    if (flags.program.program && flags.existing_servers) {
      throw std::invalid_argument(
          "--program: not allowed with --existing_servers, whose servers train only built-in "
          "models");
    }
    flags.program.check_effects(*app);
  }
  invocation.log = flags.log.options();
  invocation.log.name_task = !flags.inherited.is_child();
  invocation.confines = flags.run.confine;
  if (command == Command::kResolve) {
    const net::Resolution resolution =
        net::find_cluster(cluster_flags(task_command, flags), environment);
    invocation.action = std::make_unique<Print>(resolve_text(resolution, flags.print, flags.json));
    return invocation;
  }
  if (command == Command::kLaunch) {
    invocation.log = launch_log(invocation.log);
    check_launch_flags(*app, flags.program, launched.has_value());
  }
  // Before the download and the cluster: programs of others have neither data sets nor a resolver.
  if (launched && !flags.program.program && command == Command::kLaunch) {
    roles::ProgramOptions options = flags.launch.program_options(*launched, environment);
    options.secret = flags.run.network.credentials.of_launch(environment);
    options.gpus = flags.launch.gpu_options(environment);
    roles::check_gpus(options.gpus, options.workers);
    invocation.action =
        run_with(std::move(options), roles::run_program_launcher, roles::ProcessKind::kPrograms);
    return invocation;
  }
  // Before the cluster is resolved: a download needs none.
  if (command == Command::kDownload || flags.run.data.download_only) {
    invocation.action = run_download(flags.run.data.options(environment));
    return invocation;
  }
  if (command == Command::kLaunch) {
    roles::LaunchOptions options = manageable_launch(arguments, words.command, flags, environment);
    invocation.warnings = options.notes;
    invocation.action = run_launch(std::move(options));
    return invocation;
  }
  if (command == Command::kPlus) {
    invocation.action = run_with(plus_options(flags, environment), roles::run_plus);
    return invocation;
  }
  // Before start_task(), whose resolver would look for this process in the lists: the driver is in
  // none.
  if (flags.existing_servers) {
    invocation.attempts = read_attempts(flags.run.testing.debug_attempts);
    invocation.action = drive_servers(flags, environment, given_options(*app));
    return invocation;
  }
  start_task(command, *app, flags, environment, words, invocation);
  return invocation;
}

}  // namespace disttf
