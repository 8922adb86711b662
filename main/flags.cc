#include "main/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "main/cluster_flags.h"
#include "main/completion.h"
#include "main/config_file.h"
#include "main/data_command.h"
#include "main/doctor_command.h"
#include "main/export_command.h"
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
#include "main/secret_flags.h"
#include "main/serve_command.h"
#include "main/setting_flags.h"
#include "main/store_command.h"
#include "roles/download/datasets.h"
#include "roles/run/run_config.h"

namespace disttf {
namespace {

constexpr const char* kTraining =
    "Training (the chief's count; a worker may leave them out, a ps ignores them)";
constexpr const char* kAugmentation =
    "Augmentation: each image is changed a little, at random, each time that it is trained on";
constexpr const char* kElastic =
    "Elastic workers: either lets workers of the lists join and leave (sync)";
constexpr const char* kCheckpoints =
    "Checkpoints (the chief's flags count; a ps that writes needs --train_dir)";
constexpr const char* kOutput = "Evaluation and results";
constexpr const char* kData = "Data";
constexpr const char* kSmokeTest = "Smoke test";
constexpr const char* kTimeouts = "Timeouts: then the task ends with a sentence and an exit code";
constexpr const char* kLog = "Log (standard error)";
constexpr const char* kConfinement = "Confinement";
constexpr const char* kTesting = "Testing";

constexpr std::uint64_t kMostStarted = 1000;  // by launch, of one job
constexpr std::uint64_t kMostThreads = 256;

using roles::kMaxCount;

// A day is as good as for ever, and the sum of a few still fits everywhere.
constexpr std::uint64_t kDaySeconds = 86'400;

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
  app.add_option("--max_restarts", flags.max_restarts, "restarts of all tasks together")
      ->type_name("N")
      ->transform(whole_number(0, kMaxCount))
      ->capture_default_str()
      ->group(kLaunchGroup);
  add_insecure_flag(app, flags);
  app.add_option("--chaos", flags.chaos,
                 "`SEED,RATE`: kill or freeze a task at RATE of 1000 steps, and `--chaos_frames "
                 "SEED,RATE`; SEED "
                 "says which")
      ->type_name("SEED,RATE")
      ->check(seed_and_rate())
      ->group(kLaunchGroup);
}

void add_timeout(CLI::App& app, const char* name, std::uint64_t& value, std::uint64_t least,
                 const char* description) {
  app.add_option(name, value, description)
      ->type_name("SECONDS")
      ->transform(whole_number(least, kDaySeconds))
      ->capture_default_str()
      ->group(kTimeouts);
}

void add_heartbeat_timeout(CLI::App& app, Flags& flags) {
  // Heartbeats come every second: with 1, one that is a little late would be a death.
  add_timeout(app, "--heartbeat_timeout", flags.heartbeat_timeout_s, 2,
              "a peer silent for this long counts as lost");
}

void add_training(CLI::App& app, Flags& flags) {
  using roles::SettingGroup;
  add_setting_flags(app, SettingGroup::kTraining, kTraining, flags.settings);
  add_setting_flags(app, SettingGroup::kAugmentation, kAugmentation, flags.settings);
  add_setting_flags(app, SettingGroup::kElastic, kElastic, flags.settings);
  add_max_workers(app, flags, kElastic);
}

void add_checkpoints(CLI::App& app, Flags& flags) {
  app.add_option("--train_dir", flags.train_dir,
                 "directory for checkpoints, or [a store's URL](stores.md), `s3://BUCKET/PREFIX`, "
                 "`gs://BUCKET/PREFIX` or `hdfs://NAMENODE/PATH`; a run goes on from the newest "
                 "whole one in it")
      ->type_name("DIR")
      ->group(kCheckpoints);
  app.add_option("--save_steps", flags.save_steps,
                 "global steps between checkpoints; 0: by time alone")
      ->type_name("N")
      ->transform(whole_number(0, kMaxCount))
      ->capture_default_str()
      ->group(kCheckpoints);
  app.add_option("--save_secs", flags.save_secs,
                 "seconds between checkpoints; 0: by steps alone. Without `--train_dir` the chief "
                 "keeps the newest in memory")
      ->type_name("SECONDS")
      ->transform(whole_number(0, kDaySeconds))
      ->capture_default_str()
      ->group(kCheckpoints);
  app.add_option("--max_to_keep", flags.max_to_keep, "checkpoints that stay; 0: all")
      ->type_name("N")
      ->transform(whole_number(0, kMaxCount))
      ->capture_default_str()
      ->group(kCheckpoints);
  app.add_flag("--sharded_checkpoint", flags.sharded_checkpoint,
               "each ps writes its range into its own `--train_dir`, which chief and ps must share")
      ->transform(boolean())
      ->group(kCheckpoints);
}

void add_output(CLI::App& app, Flags& flags) {
  add_setting_flags(app, roles::SettingGroup::kOutput, kOutput, flags.settings);
  app.add_option("--log_every", flags.log_every, "local steps between log lines; 0: none")
      ->type_name("N")
      ->transform(whole_number(0, kMaxCount))
      ->capture_default_str()
      ->group(kOutput);
  app.add_flag("--print_weights_hash", flags.print_weights_hash,
               "print the SHA-256 of the final weights")
      ->transform(boolean())
      ->group(kOutput);
  app.add_flag("--print_classes", flags.print_classes,
               "print [precision and recall of each class](operations.md#results), and which is "
               "taken for which")
      ->transform(boolean())
      ->group(kOutput);
  app.add_option("--evaluator_secs", flags.evaluator_secs,
                 "of an [evaluator](evaluator.md): seconds between the beginnings of two "
                 "evaluations, at least; 0: none, as one follows the other")
      ->type_name("SECONDS")
      ->transform(whole_number(0, kDaySeconds))
      ->capture_default_str()
      ->group(kOutput);
  app.add_option("--keep_best", flags.keep_best,
                 "of an evaluator: the checkpoint that is best by `accuracy`, `loss`, "
                 "`absolute_error` or `squared_error` of the validation set stays in "
                 "`best`, below `--train_dir` [none is marked]")
      ->type_name("NAME")
      ->check(one_of({"accuracy", "loss", "absolute_error", "squared_error"}))
      ->group(kOutput);
  app.add_option("--metrics_file", flags.metrics_file,
                 "the chief, and an evaluator, adds a line of [JSON](operations.md#results) for "
                 "each evaluation")
      ->type_name("FILE")
      ->group(kOutput);
  app.add_option("--log_dir", flags.log_dir,
                 "the chief writes for [TensorBoard](tensorboard.md), below this directory, or "
                 "below a URL in "
                 "[a store](stores.md) [that of `--train_dir`, where that is a directory]")
      ->type_name("DIR")
      ->group(kOutput);
  app.add_option("--summary_every", flags.summary_every,
                 "for TensorBoard: global steps between the figures of a step; 0: none of steps")
      ->type_name("N")
      ->transform(whole_number(0, kMaxCount))
      ->capture_default_str()
      ->group(kOutput);
  app.add_option("--histogram_every", flags.histogram_every,
                 "for TensorBoard: global steps between histograms of weights and gradients; 0: at "
                 "evaluations alone")
      ->type_name("N")
      ->transform(whole_number(0, kMaxCount))
      ->capture_default_str()
      ->group(kOutput);
}

void add_on_finish(CLI::App& app, Flags& flags) {
  app.add_option("--on_finish", flags.on_finish,
                 "`idle`: stay up after the result until SIGTERM or SIGINT, then exit 0; for "
                 "engines that start again whatever ends")
      ->type_name("NAME")
      ->check(one_of({"exit", "idle"}))
      ->capture_default_str()
      ->group(kOutput);
}

std::vector<std::string> dataset_names() {
  std::vector<std::string> names = {"auto"};
  for (const roles::DatasetRow& row : roles::datasets()) {
    names.emplace_back(row.name);
  }
  return names;
}

std::string dataset_help() {
  std::string downloaded;
  std::string built_in;
  for (const roles::DatasetRow& row : roles::datasets()) {
    std::string& names = row.is_built_in() ? built_in : downloaded;
    names += (names.empty() ? "`" : ", `") + std::string(row.name) + "`";
  }
  return downloaded + "; " + built_in +
         ": built in; `auto`: " + std::string(roles::usual_dataset().word()) + ", and " +
         std::string(roles::built_in_dataset().name) + " where that cannot be had";
}

void add_data(CLI::App& app, Command command, Flags& flags) {
  app.add_option("--dataset", flags.dataset, dataset_help())
      ->type_name("NAME")
      ->check(one_of(dataset_names()))
      ->capture_default_str()
      ->group(kData);
  if (command != Command::kDownload && command != Command::kServer) {
    add_own_data_flags(app, flags.own_data, kData, /*has_path=*/true);
  }
  if (command != Command::kDownload && command != Command::kServer &&
      command != Command::kPredict && command != Command::kExport) {
    app.add_flag("--download_only", flags.download_only,
                 "fetch and extract the data set, then exit")
        ->transform(boolean())
        ->group(kData);
  }
  app.add_option(
         "--data_dir", flags.data_dir,
         "folder that the data set is in, or is downloaded to, or converted in; or [a bucket's "
         "URL](stores.md#data) that its files are taken from, to `./input_data`")
      ->type_name("DIR")
      ->capture_default_str()
      ->group(kData);
  app.add_option_function<std::vector<std::string>>(
         "--data_url",
         [&flags](const std::vector<std::string>& texts) {
           flags.data_url = split_at_commas(texts);
         },
         "folders to download from, tried in turn, instead of the two known mirrors; http or https")
      ->type_name("URL,...")
      ->check(comma_list_of(url()))
      ->group(kData);
  app.add_option("--ca_file", flags.ca_file,
                 "certificate authorities to trust, PEM [the system's file]")
      ->type_name("FILE")
      ->group(kData);
  app.add_option("--download_timeout", flags.download_timeout_s, "seconds for all files together")
      ->type_name("SECONDS")
      ->transform(whole_number(1, kDaySeconds))
      ->capture_default_str()
      ->group(kData);
}

void add_timeouts(CLI::App& app, Flags& flags) {
  add_timeout(app, "--start_timeout", flags.start_timeout_s, 1, "for tasks that were never seen");
  add_timeout(app, "--peer_timeout", flags.peer_timeout_s, 1, "for a chief or a ps that was lost");
  add_timeout(app, "--worker_timeout", flags.worker_timeout_s, 1,
              "sync: for a worker that was lost");
  add_heartbeat_timeout(app, flags);
}

void add_transport(CLI::App& app, Flags& flags) {
  add_secret_flag(app, flags);
  app.add_option("--transport", flags.transport,
                 "how tensors travel: `auto`, through shared memory between tasks of one machine, "
                 "else `tcp`; `shm`: no other way will do. Of a ps, `tcp` shares nothing")
      ->type_name("NAME")
      ->check(one_of({"auto", "tcp", "shm"}))
      ->capture_default_str()
      ->group(kTransportGroup);
}

void add_threads(CLI::App& app, Flags& flags) {
  app.add_option(
         "--threads", flags.threads,
         "threads that compute a trainer's gradients, or a ps's updates; the bits do not depend on "
         "them. `0`: one of a trainer; of a ps as many as its host has processors, 4 at most")
      ->type_name("N")
      ->transform(whole_number(0, kMostThreads))
      ->capture_default_str()
      ->group(kTransportGroup);
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
    add_transport(app, flags);
    add_threads(app, flags);
    add_metrics_flags(app, flags.metrics);
    app.add_option("--listen_fd", flags.listen_fd)->group(kHiddenGroup);
    return;
  }
  add_secret_flag(app, flags);
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

void add_log(CLI::App& app, Flags& flags) {
  app.add_option("--log_level", flags.log_level,
                 "the least severe lines to write: `debug`, `info`, `warning`, `error`, `off`")
      ->type_name("NAME")
      ->check(one_of({"debug", "info", "warning", "error", "off"}))
      ->capture_default_str()
      ->group(kLog);
  app.add_option("--log_format", flags.log_format,
                 "`json`: one object per line, also of `launch -- COMMAND`")
      ->type_name("NAME")
      ->check(one_of({"text", "json"}))
      ->capture_default_str()
      ->group(kLog);
}

void add_confine(CLI::App& app, Flags& flags) {
  app.add_flag("--confine", flags.confine,
               "reach the files, folders and ports that the flags name, and no others, and [give "
               "up](operations.md#what-a-task-gives-up) what a task has no use for, as far as the "
               "kernel can do that [true]")
      ->transform(boolean())
      ->group(kConfinement);
}

void add_chaos_frames(CLI::App& app, Flags& flags) {
  app.add_option("--chaos_frames", flags.chaos_frames,
                 "`SEED,RATE`: lose, cut, delay, repeat or reorder RATE of 1000 frames between "
                 "trainers and ps; SEED says which")
      ->type_name("SEED,RATE")
      ->check(seed_and_rate())
      ->group(kTesting);
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
  show_plain_help(*app);
  app->set_help_flag("-h,--help", "Print this help and exit");
  add_config_file(*app, command == Command::kRender ? "--cluster,--config" : "--config")
      ->type_name("FILE");
  app->allow_config_extras(CLI::config_extras_mode::error);
  if (command == Command::kCheckpoint) {
    // For the help; the words are taken off the command line before the flags are read.
    app->add_option("ACTION")
        ->description("ls, verify or show")
        ->check(one_of({"ls", "verify", "show"}));
    app->add_option("DIR")->description("The --train_dir of a run, or one checkpoint in it");
    app->footer(
        "\nls      one line for each checkpoint, newest first\n"
        "verify  reads everything; one line for each file or tensor that is wrong, and then code "
        "3\n"
        "show    step, configuration and tensors of the newest one that is whole");
    add_log(*app, flags);
    return app;
  }
  if (command == Command::kCompletion) {
    app->add_option("SHELL")
        ->description("bash, zsh or fish, whose script is printed")
        ->check(one_of(completion_shells()));
    add_log(*app, flags);
    return app;
  }
  if (command == Command::kData) {
    add_data_command_flags(*app, flags);
    add_log(*app, flags);
    return app;
  }
  if (command == Command::kPredict) {
    add_predict_flags(*app, flags);
    add_data(*app, command, flags);
    add_log(*app, flags);
    return app;
  }
  if (command == Command::kServe) {
    add_serve_flags(*app, flags);
    add_list_flags(*app, flags);
    add_max_workers(*app, flags, kClusterGroup);
    add_find_flags(*app, flags);
    add_heartbeat_timeout(*app, flags);
    add_log(*app, flags);
    add_confine(*app, flags);
    return app;
  }
  if (command == Command::kDoctor) {
    add_doctor_flags(*app, flags);
    add_log(*app, flags);
    return app;
  }
  if (command == Command::kHealthcheck) {
    add_healthcheck_flags(*app, flags);
    add_log(*app, flags);
    return app;
  }
  if (command == Command::kExport) {
    add_export_flags(*app, flags);
    add_data(*app, command, flags);
    add_log(*app, flags);
    return app;
  }
  if (command == Command::kImport) {
    add_import_flags(*app, flags);
    add_setting_flags(*app, roles::SettingGroup::kTraining, kTraining, flags.settings);
    add_log(*app, flags);
    return app;
  }
  if (command == Command::kLs || command == Command::kCp) {
    command == Command::kLs ? add_ls_flags(*app, flags) : add_cp_flags(*app, flags);
    add_log(*app, flags);
    return app;
  }
  if (command == Command::kPlot || command == Command::kShow) {
    command == Command::kPlot ? add_plot_flags(*app, flags) : add_show_flags(*app, flags);
    add_log(*app, flags);
    return app;
  }
  if (command == Command::kModel) {
    add_model_flags(*app, flags);
    add_log(*app, flags);
    return app;
  }
  if (is_management(command)) {
    add_management_flags(*app, command, flags);
    add_log(*app, flags);
    return app;
  }
  if (command == Command::kServer || command == Command::kPlus) {
    add_of_servers(*app, command, flags);
    add_log(*app, flags);
    return app;
  }
  if (command == Command::kRender) {
    add_render_flags(*app, flags.render);
  } else if (command == Command::kLaunch) {
    add_launch(*app, flags);
    add_launch_resources(*app, flags);
    add_page_flags(*app, flags);
    add_launch_of_a_command(*app, flags);
  } else if (command != Command::kDownload) {
    if (command == Command::kResolve) {
      // For the help; the word is taken off the command line before the flags are read.
      app->add_option("TASK")
          ->description("ps, worker, chief, evaluator or train, as that command sees it")
          ->check(one_of({"ps", "worker", "chief", "evaluator", "train"}));
      add_resolve_flags(*app, flags);
    }
    add_identity_flags(*app, command, flags);
    add_list_flags(*app, flags);
    if (command == Command::kTrain) {
      add_existing_servers(*app, flags);
    }
    add_find_flags(*app, flags);
    add_on_finish(*app, flags);
    if (command != Command::kPs && command != Command::kServer) {
      add_page_flags(*app, flags);
    }
    app->add_option("--listen_fd", flags.listen_fd)->group(kHiddenGroup);
    app->add_option("--progress_fd", flags.progress_fd)->group(kHiddenGroup);
  }
  if (command != Command::kDownload) {
    add_training(*app, flags);
    add_checkpoints(*app, flags);
    add_output(*app, flags);
  }
  add_data(*app, command, flags);
  if (command != Command::kDownload) {
    add_timeouts(*app, flags);
    add_transport(*app, flags);
    add_threads(*app, flags);
  }
  if (command != Command::kDownload && command != Command::kRender) {
    add_metrics_flags(*app, flags.metrics);
  }
  add_log(*app, flags);
  if (command != Command::kDownload) {
    add_confine(*app, flags);
    app->add_option("--debug_delay_ms", flags.debug_delay_ms,
                    "wait a random time of up to N ms before each push")
        ->type_name("N")
        ->transform(whole_number(0, kDaySeconds))
        ->capture_default_str()
        ->group(kTesting);
    add_chaos_frames(*app, flags);
  }
  return app;
}

}  // namespace disttf
