#include "main/flag_groups.h"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "main/cluster_flags.h"
#include "main/credential_flags.h"
#include "main/flag_values.h"
#include "main/help_text.h"
#include "main/own_data_flags.h"
#include "main/setting_flags.h"
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
constexpr const char* kTimeouts = "Timeouts: then the task ends with a sentence and an exit code";
constexpr const char* kLog = "Log (standard error)";
constexpr const char* kConfinement = "Confinement";
constexpr const char* kTesting = "Testing";
constexpr std::uint64_t kMostThreads = 256;

using roles::kMaxCount;

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

}  // namespace

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

void add_model_settings(CLI::App& app, Flags& flags) {
  add_setting_flags(app, roles::SettingGroup::kTraining, kTraining, flags.settings);
}

void add_training(CLI::App& app, Flags& flags) {
  using roles::SettingGroup;
  add_model_settings(app, flags);
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
               "print [precision and recall of each class](training.md#results), and which is "
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
                 "the chief, and an evaluator, adds a line of [JSON](training.md#results) for "
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

void add_transport(CLI::App& app, Command command, Flags& flags) {
  add_credential_flags(app, command, flags);
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
         "them. `0`: one of a trainer; of a ps as many as the processors that it can use, 4 at "
         "most")
      ->type_name("N")
      ->transform(whole_number(0, kMostThreads))
      ->capture_default_str()
      ->group(kTransportGroup);
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
               "up](operations.md#sandbox) what a task has no use for, as far as the "
               "kernel can do that [true]")
      ->transform(boolean())
      ->group(kConfinement);
}

void add_testing(CLI::App& app, Flags& flags) {
  app.add_option("--debug_delay_ms", flags.debug_delay_ms,
                 "wait a random time of up to N ms before each push")
      ->type_name("N")
      ->transform(whole_number(0, kDaySeconds))
      ->capture_default_str()
      ->group(kTesting);
  app.add_option("--chaos_frames", flags.chaos_frames,
                 "`SEED,RATE`: lose, cut, delay, repeat or reorder RATE of 1000 frames between "
                 "trainers and ps; SEED says which")
      ->type_name("SEED,RATE")
      ->check(seed_and_rate())
      ->group(kTesting);
  app.add_option("--debug_attempts", flags.debug_attempts,
                 "try `open:FILE`, `connect:ADDRESS:PORT` (IPv4) or `exec:PROGRAM`, or several, "
                 "after [what a task gives up](operations.md#sandbox), and log what "
                 "came of it")
      ->type_name("LIST")
      ->check(attempts())
      ->group(kTesting);
}

}  // namespace disttf
