#include "main/commands/task_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>
#include <vector>

#include "main/commands/launch_flags.h"
#include "main/commands/resolution_text.h"
#include "main/commands/task_actions.h"
#include "main/flag_values.h"
#include "main/flags/flag_group.h"
#include "net/wire/text.h"
#include "roles/launch/shell/program_command.h"
#include "run/process/machine.h"

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

}  // namespace

net::ClusterFlags wanted_cluster(const ClusterFlags& cluster, const InheritedFlags& inherited,
                                 std::optional<net::Job> job) {
  net::ClusterFlags wanted = cluster.for_resolvers(job);
  // The child's environment may describe the cluster that launch itself runs in, so no other
  // resolver is tried.
  if (inherited.is_child() && wanted.resolver == "auto") {
    wanted.resolver = "flags";
  }
  return wanted;
}

roles::Task make_task(const NetworkFlags& network, const TimeoutFlags& timeouts,
                      const InheritedFlags& inherited, const Environment& environment,
                      net::ClusterAndTask found) {
  std::shared_ptr<net::Credentials> credentials =
      // Before the cluster is moved from below: the credentials depend on who else is in it.
      network.credentials.of_task(environment, found.cluster, found.task, inherited.is_child());
  return {.cluster = std::move(found.cluster),
          .self = found.task,
          .incarnation = roles::new_incarnation(),
          .timeouts = timeouts.options(),
          .transport = network.transport_option(),
          .threads = network.threads,
          .listen_fd = inherited.listen_fd,
          .credentials = std::move(credentials)};
}

void TaskCommand::add_options(CLI::App& app) {
  FlagGroup add(app, kClusterGroup);
  cluster_.add_identity(app, kind_.names_job);
  cluster_.add_lists(app);
  if (kind_.can_drive_servers) {
    add.toggle("--existing_servers", existing_servers_,
               "`train`: the lists name running `disttf server` tasks; [drive them from "
               "here](operations.md#existing-servers)");
  }
  cluster_.add_finding(app);
  run_.output.add_on_finish(app);
  if (kind_.has_page) {
    page_.add_to(app);
  }
  if (kind_.takes_program) {
    program_.add_to(app);
    program_.add_fd(app);
  }
  inherited_.add_to(app);
  run_.add_to(app, CredentialFlags::Of::kOneTask);
  add_metrics_flags(app, run_.metrics);
}

void TaskCommand::add_last_options(CLI::App& app) {
  Command::add_last_options(app);
  run_.add_last(app);
}

std::unique_ptr<Action> TaskCommand::action(const ParsedLine& line) {
  // Before any role is chosen, so that a wrong address flag is reported the same way for each.
  check_addresses(run_.metrics, page_);
  if (kind_.takes_program) {
    program_.check_command(kind_.name, line.program.has_value());
    if (program_.program && existing_servers_) {
      throw std::invalid_argument(
          "--program: not allowed with --existing_servers, whose servers train only built-in "
          "models");
    }
    program_.check_effects(line.app);
  }
  line.invocation.log.name_task = !inherited_.is_child();
  line.invocation.confines = run_.confine;
  return start(line);
}

std::unique_ptr<Action> TaskCommand::start(const ParsedLine& line) {
  Invocation& invocation = line.invocation;
  // Before the cluster is resolved: a download needs none.
  if (run_.data.download_only) {
    return run_download(run_.data.options(line.environment));
  }
  // Before the resolvers, which would look for this process in the lists: the driver is in none.
  if (existing_servers_) {
    return drive_servers(line);
  }
  // An evaluator of checkpoints must also start where the environment describes an unrelated or
  // malformed cluster.
  if (kind_.job == net::Job::kEvaluator && !run_.checkpoints.train_dir.empty() &&
      !cluster_.has_lists()) {
    return evaluate(
        line, {.cluster = {}, .task = {.job = net::Job::kEvaluator, .index = 0}, .warnings = {}});
  }
  net::Resolution resolution = resolve(kind_.job, line.environment);
  if (program_.fd < 0) {  // else the supervisor, which started this task, has logged both
    // Kept, not logged: the log is set up after parsing, with the flags that are being parsed.
    invocation.warnings = std::move(resolution.warnings);
    if (!inherited_.is_child()) {  // else launch has logged it
      invocation.summary = summary(resolution);
    }
  }
  if (!resolution.found) {
    return run_alone(line);
  }
  return start_task(line, std::move(*resolution.found));
}

net::Resolution TaskCommand::resolve(std::optional<net::Job> job,
                                     const Environment& environment) const {
  net::ClusterFlags wanted = wanted_cluster(cluster_, inherited_, job);
  wanted.max_workers = run_.training.max_workers;
  return net::find_cluster(wanted, environment);
}

// No cluster: trains on this machine, as orchestrators expect of a job with a single task.
std::unique_ptr<Action> TaskCommand::run_alone(const ParsedLine& line) const {
  // The tasks of a local run would idle after the result, and the launch would never end.
  if (run_.output.on_finish == "idle") {
    throw std::invalid_argument("--on_finish: \"idle\" is not allowed without a cluster");
  }
  log_as_launch(line.invocation.log);
  roles::LaunchOptions options =
      launch_options(line.app, {.launch = {}, .run = run_, .program = program_}, 1, 1,
                     line.program.value_or(std::vector<std::string>()));
  options.page = page_.options(run_.metrics.files);
  options.secret = run_.network.credentials.of_launch(line.environment);
  check_launched_program(options, line.environment);
  return run_launch(std::move(options));
}

std::unique_ptr<Action> TaskCommand::start_task(const ParsedLine& line,
                                                net::ClusterAndTask found) const {
  const net::TaskId self = found.task;
  const std::string name = net::task_name(self);
  if (self.job == net::Job::kEvaluator) {
    if (program_.program) {
      throw std::invalid_argument(
          "--program: not allowed for an evaluator, which evaluates only built-in models");
    }
    return evaluate(line, std::move(found));
  }
  line.invocation.log.task = name;
  // Checked here: only the resolved cluster shows which task is the chief.
  if (page_.page && !found.cluster.is_chief(self)) {
    throw std::invalid_argument("--page: only the chief serves it, and this task is " + name);
  }
  roles::TrainerOptions options = trainer_options(line, std::move(found));
  // Whether this process starts a task and its program; a ps has none. After the checks of a
  // trainer: the supervisor reports a wrong flag before anything starts.
  if (program_.program && program_.fd < 0 && self.job != net::Job::kPs) {
    return run_with(own_program_options(line, options.task), roles::run_own_program,
                    roles::ProcessKind::kPrograms);
  }
  line.invocation.attempts = read_attempts(run_.testing.debug_attempts);
  return std::make_unique<RunTask>(std::move(options), run_.metrics);
}

std::unique_ptr<Action> TaskCommand::drive_servers(const ParsedLine& line) const {
  const std::set<std::string> given = given_options(line.app);
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
  if (run_.checkpoints.sharded) {
    refuse("sharded_checkpoint", "whose servers write no files");
  }
  if (run_.output.on_finish == "idle") {
    refuse("on_finish idle", "whose exit ends the run on the servers");
  }
  if (given.contains("data")) {
    refuse("data", "whose servers support only named data sets");
  }
  net::ClusterAndTask found;
  found.cluster = cluster_.find_lists(line.environment);
  // The driver leads the listed cluster as its chief, and is itself in no list.
  found.task = {.job = net::Job::kChief, .index = 0};
  line.invocation.attempts = read_attempts(run_.testing.debug_attempts);
  return std::make_unique<RunDriver>(trainer_options(line, std::move(found)), run_.metrics);
}

// `found` has no cluster if the evaluator only has a --train_dir.
std::unique_ptr<Action> TaskCommand::evaluate(const ParsedLine& line,
                                              net::ClusterAndTask found) const {
  line.invocation.log.task = net::task_name(found.task);
  line.invocation.attempts = read_attempts(run_.testing.debug_attempts);
  const std::string& train_dir = run_.checkpoints.train_dir;
  const std::string& keep_best = run_.output.keep_best;
  if (train_dir.empty() && found.cluster.ps.empty()) {
    throw std::invalid_argument(
        "--train_dir: missing; an evaluator needs the directory of a run's checkpoints, or "
        "--ps_hosts and --worker_hosts of a running cluster");
  }
  if (!keep_best.empty() && train_dir.empty()) {
    throw std::invalid_argument(
        "--keep_best: " + net::quoted(keep_best) +
        " is not allowed without --train_dir, the directory of the checkpoints");
  }
  roles::EvaluatorOptions evaluator{.trainer = {},
                                    .every = std::chrono::seconds(run_.output.evaluator_secs)};
  evaluator.keep_best = roles::best_metric_from_name(keep_best);
  roles::TrainerOptions& options = evaluator.trainer;
  options.task = task(line.environment, std::move(found));
  // Not run_config(), which derives what depends on the counts of ps and trainers: an evaluator of
  // checkpoints has no cluster.
  options.config = run_.training.settings.run;
  options.explicit_flags = given_options(line.app);
  options.data = run_.data.options(line.environment);
  options.print_weights_hash = run_.output.print_weights_hash;
  options.print_classes = run_.output.print_classes;
  options.metrics_file = run_.output.metrics_file;
  options.checkpoint.train_dir = train_dir;
  options.summaries.directory = run_.summary_directory();
  options.progress_fd = inherited_.progress_fd;
  return std::make_unique<RunEvaluator>(std::move(evaluator), run_.metrics);
}

roles::Task TaskCommand::task(const Environment& environment, net::ClusterAndTask found) const {
  roles::Task task =
      make_task(run_.network, run_.timeouts, inherited_, environment, std::move(found));
  if (!run_.testing.chaos_frames.empty()) {
    task.faults = read_seed_and_rate(run_.testing.chaos_frames);
  }
  task.on_finish =
      run_.output.on_finish == "idle" ? roles::OnFinish::kIdle : roles::OnFinish::kExit;
  return task;
}

roles::TrainerOptions TaskCommand::trainer_options(const ParsedLine& line,
                                                   net::ClusterAndTask found) const {
  roles::TrainerOptions options;
  options.task = task(line.environment, std::move(found));
  check_places(run_.checkpoints, run_.output);
  const net::Cluster& cluster = options.task.cluster;
  // The driver trains as the chief, and is in no list.
  const std::size_t drivers = existing_servers_ ? 1 : 0;
  // The counts come from the cluster found, not from flags: a resolver may have derived them from
  // the environment.
  options.config = run_.run_config(cluster.ps.size(), cluster.trainer_count() + drivers);
  // A trainer compares these flags with the configuration that the chief publishes, and exits if
  // they contradict it. Defaults are not compared.
  options.explicit_flags = given_options(line.app);
  options.data = run_.data.options(line.environment);
  options.explicit_flags.erase("dataset");  // compared separately, by the data that was opened
  if (!run_.training.settings.has("isa")) {
    options.explicit_flags.erase("isa");  // `auto` depends on the CPU
  }
  options.log_every = run_.output.log_every;
  options.print_weights_hash = run_.output.print_weights_hash;
  options.print_classes = run_.output.print_classes;
  options.metrics_file = run_.output.metrics_file;
  options.max_injected_delay = std::chrono::milliseconds(run_.testing.debug_delay_ms);
  options.checkpoint = run_.checkpoints.options();
  options.summaries = {.directory = run_.summary_directory(),
                       .every = run_.output.summary_every,
                       .histogram_every = run_.output.histogram_every};
  options.page = page_.options(run_.metrics.files);
  options.progress_fd = inherited_.progress_fd;
  options.program_fd = program_.fd;
  options.program_timeout = std::chrono::seconds(program_.rules.timeouts.step_s);
  options.check_gradients = program_.rules.check_gradients;
  return options;
}

// `task` has passed the checks of a trainer; only its cluster and its identity are used.
roles::OwnProgramOptions TaskCommand::own_program_options(const ParsedLine& line,
                                                          const roles::Task& task) const {
  roles::OwnProgramOptions options{
      .cluster = task.cluster,
      .self = task.self,
      .program = roles::find_command("COMMAND", line.program.value_or(std::vector<std::string>()),
                                     task.cluster, task.self, search_path(line.environment)),
      .has_spare = program_.rules.spare,
      .end_timeout = std::chrono::seconds(program_.rules.timeouts.end_s),
      .task_words = {line.given.begin(), std::ranges::find(line.given, "--")},
      .listen_fd = inherited_.listen_fd,
      .progress_fd = inherited_.progress_fd};
  // A child gets no TF_CONFIG but one of its variables; the task needs that of this process.
  if (const auto found = line.environment.find("TF_CONFIG"); found != line.environment.end()) {
    options.task_variables.push_back("TF_CONFIG=" + found->second);
  }
  return options;
}

}  // namespace disttf
