#include "main/flags.h"

#include <CLI/CLI.hpp>

#include "math/kernels.h"

namespace disttf {
namespace {

constexpr const char* kCluster = "Cluster";
constexpr const char* kTraining =
    "Training (the chief's count; a worker may leave them out, a ps ignores them)";
constexpr const char* kOutput = "Evaluation and results";
constexpr const char* kData = "Data";
constexpr const char* kPatience = "Patience: after these, a sentence and an exit code";
constexpr const char* kLog = "Log (standard error)";
constexpr const char* kTesting = "Testing";

// A day is as good as for ever, and the sum of a few still fits everywhere.
const CLI::Range kSeconds(1, 86'400);

void add_cluster(CLI::App& app, Command command, Flags& flags) {
  if (command == Command::kTrain) {
    app.add_option("--job_name", flags.job_name, "This task's job: ps, worker or chief")
        ->type_name("JOB")
        ->group(kCluster);
  } else {
    // The tutorials pass it to every task; where the command says the same it may be there.
    app.add_option("--job_name", flags.job_name)->group(kHiddenGroup);
  }
  app.add_option("--task_index,--worker_index", flags.task_index,
                 "This task's place in its job's list, from 0")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->group(kCluster);
  app.add_option("--ps_hosts", flags.ps_hosts, "The parameter servers, in order")
      ->type_name("HOST:PORT,...")
      ->group(kCluster);
  app.add_option("--worker_hosts", flags.worker_hosts,
                 "The workers, in order; worker 0 is the chief where there is no other")
      ->type_name("HOST:PORT,...")
      ->group(kCluster);
  app.add_option("--chief_host,--chief_hosts", flags.chief_host, "A chief task of its own")
      ->type_name("HOST:PORT")
      ->group(kCluster);
}

void add_launch(CLI::App& app, Flags& flags) {
  constexpr std::size_t kMostTasks = 1000;
  app.add_option("--ps,-s", flags.launch_ps, "Parameter servers to start")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, kMostTasks))
      ->capture_default_str()
      ->group(kLaunchGroup);
  app.add_option("--workers,-w", flags.launch_workers, "Workers to start")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{0}, kMostTasks))
      ->capture_default_str()
      ->group(kLaunchGroup);
  app.add_flag("--chief", flags.launch_chief, "Start a chief task besides; it trains as well")
      ->group(kLaunchGroup);
}

void add_model(CLI::App& app, Flags& flags) {
  app.add_option("--model", flags.model, "softmax, or mlp: hidden layers with ReLU")
      ->check(CLI::IsMember({"softmax", "mlp"}))
      ->capture_default_str()
      ->group(kTraining);
  app.add_option("--hidden_units", flags.hidden_units, "Units of each hidden layer, e.g. 128,128")
      ->type_name("N,...")
      ->delimiter(',')
      ->capture_default_str()
      ->group(kTraining);
  app.add_option("--optimizer", flags.optimizer,
                 "sgd, momentum, adagrad or adam; it runs on the ps")
      ->check(CLI::IsMember({"sgd", "momentum", "adagrad", "adam"}))
      ->capture_default_str()
      ->group(kTraining);
  app.add_option("--learning_rate", flags.learning_rate,
                 "Default: 0.01 for adam, 0.1 for momentum and adagrad, 0.5 for sgd")
      ->type_name("RATE")
      ->group(kTraining);
  app.add_option("--learning_rate_decay", flags.learning_rate_decay,
                 "linear: the rate falls evenly to 0 at --train_steps; none: it stays")
      ->check(CLI::IsMember({"linear", "none"}))
      ->capture_default_str()
      ->group(kTraining);
  app.add_option("--momentum", flags.momentum, "Of --optimizer momentum")
      ->type_name("RATE")
      ->capture_default_str()
      ->group(kTraining);
  app.add_option("--isa", flags.isa,
                 "Instruction set of the arithmetic: auto, generic, avx2 or avx512. Its last bits "
                 "depend on it, so the chief decides for the run")
      ->capture_default_str()
      ->group(kTraining);
  app.add_option("--seed", flags.seed, "Of initial values and of the order of the rows")
      ->type_name("N")
      ->capture_default_str()
      ->group(kTraining);
}

void add_steps(CLI::App& app, Flags& flags) {
  app.add_option("--train_steps", flags.train_steps,
                 "Global steps: updates of the parameters, by whoever they come from")
      ->type_name("N")
      ->capture_default_str()
      ->group(kTraining);
  app.add_option("--batch_size", flags.batch_size, "Images per trainer and step")
      ->type_name("N")
      ->capture_default_str()
      ->group(kTraining);
  app.add_flag("--sync_replicas,--sync_replica", flags.sync_replicas,
               "A step takes one gradient of every trainer; =false: each is applied as it comes "
               "[true]")
      ->group(kTraining);
  app.add_option("--replicas_to_aggregate", flags.replicas_to_aggregate,
                 "Sync: the first N gradients make a step, late ones are dropped (backup workers); "
                 "0: all")
      ->type_name("N")
      ->capture_default_str()
      ->group(kTraining);
  app.add_option("--max_staleness", flags.max_staleness,
                 "Async: no trainer may be more than N steps of its own ahead of the slowest "
                 "[no bound]")
      ->type_name("N")
      ->group(kTraining);
  app.add_option("--train_dir", flags.train_dir)->group(kHiddenGroup);
}

void add_output(CLI::App& app, Flags& flags) {
  app.add_option("--eval_every", flags.eval_every,
                 "Global steps between evaluations by the chief; 0: at the end only")
      ->type_name("N")
      ->capture_default_str()
      ->group(kOutput);
  app.add_option("--log_every", flags.log_every, "Local steps between log lines; 0: none")
      ->type_name("N")
      ->capture_default_str()
      ->group(kOutput);
  app.add_flag("--print_weights_hash", flags.print_weights_hash,
               "Print the SHA-256 of the final weights")
      ->group(kOutput);
}

void add_data(CLI::App& app, Command command, Flags& flags) {
  if (command != Command::kDownload) {
    app.add_option("--dataset", flags.dataset,
                   "mnist, digits (built in), or auto: mnist, and digits where it cannot be had")
        ->check(CLI::IsMember({"auto", "mnist", "digits"}))
        ->capture_default_str()
        ->group(kData);
    app.add_flag("--download_only", flags.download_only, "Fetch and extract MNIST, then exit")
        ->group(kData);
  }
  app.add_option("--data_dir", flags.data_dir, "Where the data set is, or is downloaded to")
      ->type_name("DIR")
      ->capture_default_str()
      ->group(kData);
  app.add_option("--data_url", flags.data_url,
                 "Mirrors to try in turn instead of the known ones; http or https")
      ->type_name("URL,...")
      ->delimiter(',')
      ->group(kData);
  app.add_option("--ca_file", flags.ca_file, "Certificates to trust (PEM) [the system's]")
      ->type_name("FILE")
      ->group(kData);
  app.add_option("--download_timeout", flags.download_timeout_s, "For all files together")
      ->type_name("SECONDS")
      ->check(kSeconds)
      ->capture_default_str()
      ->group(kData);
}

void add_patience(CLI::App& app, Flags& flags) {
  const auto add = [&app](const char* name, std::uint64_t& value, const char* description) {
    app.add_option(name, value, description)
        ->type_name("SECONDS")
        ->check(kSeconds)
        ->capture_default_str()
        ->group(kPatience);
  };
  add("--start_timeout", flags.start_timeout_s, "For tasks that have not been seen yet");
  add("--peer_timeout", flags.peer_timeout_s, "For a chief or a ps that was lost");
  add("--worker_timeout", flags.worker_timeout_s, "Sync: for a worker that was lost");
  add("--heartbeat_timeout", flags.heartbeat_timeout_s, "Silence that counts as death");
}

void add_log(CLI::App& app, Flags& flags) {
  app.add_option("--log_level", flags.log_level, "debug, info, warning, error or off")
      ->check(CLI::IsMember({"debug", "info", "warning", "error", "off"}))
      ->capture_default_str()
      ->group(kLog);
  app.add_option("--log_format", flags.log_format, "text, or json: one object a line")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str()
      ->group(kLog);
}

}  // namespace

const std::vector<CommandInfo>& commands() {
  static const std::vector<CommandInfo> kCommands = {
      {Command::kLaunch, "launch", "Train on this machine: starts ps and workers as processes"},
      {Command::kPs, "ps", "One parameter server of a cluster"},
      {Command::kWorker, "worker",
       "One worker of a cluster; worker 0 is the chief where there is "
       "no other"},
      {Command::kChief, "chief", "The chief of a cluster, as a task of its own"},
      {Command::kTrain, "train",
       "Any of these: the role comes from --job_name or TF_CONFIG; "
       "without a cluster, trains on this machine"},
      {Command::kDownload, "download", "Fetch and extract MNIST, train nothing"},
  };
  return kCommands;
}

std::unique_ptr<CLI::App> make_app(Command command, Flags& flags) {
  const CommandInfo* info = nullptr;
  for (const CommandInfo& candidate : commands()) {
    if (candidate.command == command) {
      info = &candidate;
    }
  }
  auto app = std::make_unique<CLI::App>(info->description, std::string("disttf ") + info->name);
  app->option_defaults()->always_capture_default(false);
  app->set_help_flag("-h,--help", "Print this help and exit");
  app->set_config("--config", "", "Read flags from a TOML file; the command line wins")
      ->type_name("FILE");
  app->allow_config_extras(CLI::config_extras_mode::error);
  if (command == Command::kLaunch) {
    add_launch(*app, flags);
  } else if (command != Command::kDownload) {
    add_cluster(*app, command, flags);
    app->add_option("--listen_fd", flags.listen_fd)->group(kHiddenGroup);
    app->add_option("--progress_fd", flags.progress_fd)->group(kHiddenGroup);
  }
  if (command != Command::kDownload) {
    add_model(*app, flags);
    add_steps(*app, flags);
    add_output(*app, flags);
  }
  add_data(*app, command, flags);
  if (command != Command::kDownload) {
    add_patience(*app, flags);
    app->add_option("--debug_delay_ms", flags.debug_delay_ms,
                    "Wait a random time of up to N ms before each push")
        ->type_name("N")
        ->capture_default_str()
        ->group(kTesting);
  }
  add_log(*app, flags);
  return app;
}

}  // namespace disttf
