#include "main/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "main/cluster_flags.h"
#include "main/command_texts.h"
#include "main/completion.h"
#include "main/config_file.h"
#include "main/credential_flags.h"
#include "main/data_command.h"
#include "main/doctor_command.h"
#include "main/export_command.h"
#include "main/flag_groups.h"
#include "main/flag_values.h"
#include "main/help_text.h"
#include "main/import_command.h"
#include "main/launch_command.h"
#include "main/launch_options.h"
#include "main/manage_command.h"
#include "main/metrics_flags.h"
#include "main/model_command.h"
#include "main/page_flags.h"
#include "main/plot_command.h"
#include "main/predict_command.h"
#include "main/serve_command.h"
#include "main/store_command.h"
#include "roles/run/run_config.h"

namespace disttf {
namespace {

constexpr const char* kSmokeTest = "Smoke test";

constexpr std::uint64_t kMostStarted = 1000;  // by launch, of one job

using roles::kMaxCount;

void add_launch(CLI::App& app, Flags& flags) {
  app.add_option("--ps,-s", flags.launch_ps, "parameter servers to start")
      ->type_name("N")
      ->transform(whole_number(0, kMostStarted))
      ->capture_default_str()
      ->group(kLaunchGroup);
  app.add_option("--workers,-w", flags.launch_workers, "workers to start")
      ->type_name("N")
      ->transform(whole_number(0, kMostStarted))
      ->capture_default_str()
      ->group(kLaunchGroup);
  app.add_flag("--chief", flags.launch_chief, "start a chief task as well; it trains like a worker")
      ->transform(boolean())
      ->group(kLaunchGroup);
  app.add_flag("--evaluator", flags.launch_evaluator,
               "start an [evaluator](evaluator.md) as well, whose end is never the run's")
      ->transform(boolean())
      ->group(kLaunchGroup);
  app.add_option("--restart", flags.restart,
                 "`on-failure`: a task that was killed or lost its peers is started again; "
                 "`never`: its end "
                 "is the run's")
      ->type_name("NAME")
      ->check(one_of({"on-failure", "never"}))
      ->capture_default_str()
      ->group(kLaunchGroup);
  app.add_option("--max_restarts", flags.max_restarts,
                 "restarts of all tasks together; as many again of the evaluator")
      ->type_name("N")
      ->transform(whole_number(0, kMaxCount))
      ->capture_default_str()
      ->group(kLaunchGroup);
  app.add_option("--chaos", flags.chaos,
                 "`SEED,RATE`: kill or freeze a task at RATE of 1000 steps, and `--chaos_frames "
                 "SEED,RATE`; SEED "
                 "says which")
      ->type_name("SEED,RATE")
      ->check(seed_and_rate())
      ->group(kLaunchGroup);
}

// What server and plus take besides the log's flags.
void add_of_servers(CLI::App& app, Command command, Flags& flags) {
  add_list_flags(app, flags);
  add_heartbeat_timeout(app, flags);
  if (command == Command::kServer) {
    add_identity_flags(app, command, flags);
    add_find_flags(app, flags);
    add_data(app, command, flags);
    add_timeout(app, "--peer_timeout", flags.peer_timeout_s, 1, "for an answer, or the next order");
    add_transport(app, command, flags);
    add_threads(app, flags);
    add_metrics_flags(app, flags.metrics);
    app.add_option("--listen_fd", flags.listen_fd)->group(kHiddenGroup);
    return;
  }
  add_credential_flags(app, command, flags);
  app.add_flag("--verbose", flags.verbose,
               "a line for each task, too: round trip, version, and whom it reaches")
      ->transform(boolean())
      ->group(kSmokeTest);
  app.add_option("--wait", flags.wait_s, "seconds to wait for servers that are not there yet")
      ->type_name("SECONDS")
      ->transform(whole_number(0, kDaySeconds))
      ->capture_default_str()
      ->group(kSmokeTest);
}

// `checkpoint`'s words, for the help; they are taken off the command line before the flags are
// read.
void add_checkpoint_words(CLI::App& app) {
  app.add_option("ACTION")
      ->description("ls, verify or show")
      ->check(one_of({"ls", "verify", "show"}));
  app.add_option("DIR")->description("The --train_dir of a run, or one checkpoint in it");
  app.footer(
      "\nls      one line for each checkpoint, newest first\n"
      "verify  reads everything; one line for each file or tensor that is wrong, and then code "
      "3\n"
      "show    step, configuration and tensors of the newest one that is whole");
}

void add_serve(CLI::App& app, Flags& flags) {
  add_serve_flags(app, flags);
  add_list_flags(app, flags);
  add_max_workers(app, flags, kClusterGroup);
  add_find_flags(app, flags);
  add_heartbeat_timeout(app, flags);
}

// Those of a command that has few, besides the log's. False: it has those of a task.
bool add_few(CLI::App& app, Command command, Flags& flags) {
  switch (command) {
    case Command::kCheckpoint:
      add_checkpoint_words(app);
      return true;
    case Command::kCompletion:
      app.add_option("SHELL")
          ->description("bash, zsh or fish, whose script is printed")
          ->check(one_of(completion_shells()));
      return true;
    case Command::kLicenses:
      return true;
    case Command::kData:
      add_data_command_flags(app, flags);
      return true;
    case Command::kPredict:
      add_predict_flags(app, flags);
      add_data(app, command, flags);
      return true;
    case Command::kServe:
      add_serve(app, flags);
      return true;
    case Command::kDoctor:
      add_doctor_flags(app, flags);
      return true;
    case Command::kHealthcheck:
      add_healthcheck_flags(app, flags);
      return true;
    case Command::kExport:
      add_export_flags(app, flags);
      add_data(app, command, flags);
      return true;
    case Command::kImport:
      add_import_flags(app, flags);
      add_model_settings(app, flags);
      return true;
    case Command::kLs:
      add_ls_flags(app, flags);
      return true;
    case Command::kCp:
      add_cp_flags(app, flags);
      return true;
    case Command::kPlot:
      add_plot_flags(app, flags);
      return true;
    case Command::kShow:
      add_show_flags(app, flags);
      return true;
    case Command::kModel:
      add_model_flags(app, flags);
      return true;
    case Command::kServer:
    case Command::kPlus:
      add_of_servers(app, command, flags);
      return true;
    default:
      if (!is_management(command)) return false;
      add_management_flags(app, command, flags);
      return true;
  }
}

// Which task it is, of which cluster, and what its end is like.
void add_of_one_task(CLI::App& app, Command command, Flags& flags) {
  if (command == Command::kResolve) {
    // For the help; the word is taken off the command line before the flags are read.
    app.add_option("TASK")
        ->description("ps, worker, chief, evaluator or train, as that command sees it")
        ->check(one_of({"ps", "worker", "chief", "evaluator", "train"}));
    add_resolve_flags(app, flags);
  }
  add_identity_flags(app, command, flags);
  add_list_flags(app, flags);
  if (command == Command::kTrain) {
    add_existing_servers(app, flags);
  }
  add_find_flags(app, flags);
  add_on_finish(app, flags);
  if (command != Command::kPs) {
    add_page_flags(app, flags);
  }
  app.add_option("--listen_fd", flags.listen_fd)->group(kHiddenGroup);
  app.add_option("--progress_fd", flags.progress_fd)->group(kHiddenGroup);
}

// Those of a task, of what starts tasks or writes their files, and of download, which are some of
// them; besides the log's.
void add_of_tasks(CLI::App& app, Command command, Flags& flags) {
  if (command == Command::kDownload) {
    add_data(app, command, flags);
    return;
  }
  if (command == Command::kRender) {
    add_render_flags(app, flags.render);
  } else if (command == Command::kLaunch) {
    add_launch(app, flags);
    add_launch_resources(app, flags);
    add_page_flags(app, flags);
    add_launch_of_a_command(app, flags);
  } else {
    add_of_one_task(app, command, flags);
  }
  add_training(app, flags);
  add_checkpoints(app, flags);
  add_output(app, flags);
  add_data(app, command, flags);
  add_timeouts(app, flags);
  add_transport(app, command, flags);
  add_threads(app, flags);
  if (command != Command::kRender) {
    add_metrics_flags(app, flags.metrics);
  }
}

}  // namespace

const std::vector<CommandInfo>& commands() {
  static const std::vector<CommandInfo> kCommands = {
      {Command::kLaunch, "launch", "Train on this machine: starts ps and workers as processes"},
      {Command::kPs, "ps", "One parameter server of a cluster"},
      {Command::kWorker, "worker",
       "One worker of a cluster; worker 0 is the chief where there is "
       "no chief task"},
      {Command::kChief, "chief", "The chief of a cluster, as a task of its own"},
      {Command::kEvaluator, "evaluator",
       "Scores a run's checkpoints, or what its ps hold, beside it"},
      {Command::kTrain, "train",
       "Any of these: the role comes from --job_name, TF_CONFIG or the environment; "
       "without a cluster, trains on this machine"},
      {Command::kServer, "server",
       "A task that waits for orders: those of plus, or of train --existing_servers"},
      {Command::kPlus, "plus", "A cluster's smoke test: its servers add 10 and 32"},
      {Command::kDownload, "download", "Fetch and extract a data set, train nothing"},
      {Command::kCheckpoint, "checkpoint", "List, verify or show checkpoints"},
      {Command::kModel, "model", "Show what a model consists of"},
      {Command::kData, "data", "Show what your own data consists of"},
      {Command::kResolve, "resolve",
       "Show which task this would be, of which cluster, and what says so; starts nothing"},
      {Command::kDoctor, "doctor", "Show what a task would find on this machine"},
      {Command::kRender, "render", "Write a cluster engine's file: a TFJob, a Slurm script, ..."},
      {Command::kPredict, "predict", "Ask a trained model about images or rows of a table"},
      {Command::kServe, "serve", "Let a trained model answer over HTTP"},
      {Command::kHealthcheck, "healthcheck",
       "Ask a service whether it is well: the exit code says it to an engine"},
      {Command::kExport, "export",
       "Write a trained model for other programs: ONNX, SavedModel, safetensors, NumPy"},
      {Command::kImport, "import", "Begin a run with somebody else's model, or an exported one"},
      {Command::kLs, "ls", "What lies in a directory, or in a bucket"},
      {Command::kCp, "cp", "Copy files to a bucket, from one, or between two"},
      {Command::kPlot, "plot", "Draw the curves of runs: in the terminal, or as SVG"},
      {Command::kShow, "show", "Show what a run was: result, curves, tasks, events"},
      {Command::kCompletion, "completion", "Print what completes disttf's words in a shell"},
      {Command::kLicenses, "licenses",
       "Print the licences of disttf and of the components linked into it"},
      {Command::kStatus, "status", "The tasks of a running launch, and how far it is"},
      {Command::kTop, "top", "What each task of a running launch does now, redrawn"},
      {Command::kTrace, "trace", "A timeline of some steps of all tasks, for ui.perfetto.dev"},
      {Command::kPage, "page", "A link to the page of a running launch, for one more browser"},
      {Command::kEndpoints, "endpoints", "The addresses of a running launch"},
      {Command::kLogs, "logs", "What a task of a running launch has printed"},
      {Command::kPods, "pods", "List, restart or replace the tasks of a running launch"},
      {Command::kUpdate, "update", "Give a running launch more workers or other settings"},
  };
  return kCommands;
}

std::unique_ptr<CLI::App> make_app(Command command, Flags& flags) {
  const auto info =
      std::find_if(commands().begin(), commands().end(),
                   [command](const CommandInfo& each) { return each.command == command; });
  auto app = std::make_unique<CLI::App>(info->description, std::string("disttf ") + info->name);
  app->option_defaults()->always_capture_default(false);
  show_plain_help(*app, text_of(command).examples);
  app->set_help_flag("-h,--help", "Print this help and exit");
  app->set_help_all_flag("--help-all", "Print the help with all flags and exit");
  add_config_file(*app, command == Command::kRender ? "--cluster,--config" : "--config")
      ->type_name("FILE");
  app->allow_config_extras(CLI::config_extras_mode::error);
  const bool has_few = add_few(*app, command, flags);
  if (!has_few) {
    add_of_tasks(*app, command, flags);
  }
  add_log(*app, flags);
  if (!has_few && command != Command::kDownload) {
    add_confine(*app, flags);
    add_testing(*app, flags);
  }
  if (command == Command::kServe) {
    add_confine(*app, flags);
  }
  return app;
}

}  // namespace disttf
