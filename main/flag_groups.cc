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
    "Training (the chief's values apply; a worker may omit them, a ps ignores them)";
constexpr const char* kAugmentation = "Augmentation: random changes of each training image";
constexpr const char* kElastic =
    "Elastic workers: either flag lets listed workers join and leave (sync)";
constexpr const char* kCheckpoints =
    "Checkpoints (the chief's values apply; a ps that writes needs --train_dir)";
constexpr const char* kOutput = "Evaluation and results";
constexpr const char* kData = "Data";
constexpr const char* kTimeouts = "Timeouts: the task then exits with a message";
constexpr const char* kLog = "Log (standard error)";
constexpr const char* kConfinement = "Confinement";
constexpr const char* kTesting = "Testing";
constexpr std::uint64_t kMostThreads = 256;

using roles::kMaxCount;

std::vector<std::string> dataset_names() {
  // "auto" is in no table: find_dataset() returns none for it.
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
  return "the data set: " + downloaded + "; " + built_in +
         ": built in; `auto`: " + std::string(roles::usual_dataset().word()) + ", and " +
         std::string(roles::built_in_dataset().name) + " if it is unavailable";
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
  // Heartbeats come every second: a timeout of 1 s would expire when one is slightly late.
  add_timeout(app, "--heartbeat_timeout", flags.heartbeat_timeout_s, 2,
              "a peer without messages for this long counts as lost");
}

void add_model_settings(CLI::App& app, Flags& flags) {
  add_setting_flags(app, roles::SettingGroup::kTraining, kTraining, flags.settings);
}

void add_training(CLI::App& app, Flags& flags) {
  using roles::SettingGroup;
  add_model_settings(app, flags);
  add_setting_flags(app, SettingGroup::kAugmentation, kAugmentation, flags.settings);
  add_setting_flags(app, SettingGroup::kElastic, kElastic, flags.settings);
  // In another group than for serve, where the flag describes the cluster to follow.
  add_max_workers(app, flags, kElastic);
}

void add_checkpoints(CLI::App& app, Flags& flags) {
  app.add_option("--train_dir", flags.train_dir,
                 "directory for checkpoints, or [a store's URL](stores.md): `s3://BUCKET/PREFIX`, "
                 "`gs://BUCKET/PREFIX`, `hdfs://NAMENODE/PATH`; a run continues from its newest "
                 "complete checkpoint")
      ->type_name("DIR")
      ->group(kCheckpoints);
  app.add_option("--save_steps", flags.save_steps,
                 "global steps between checkpoints; 0: by time only")
      ->type_name("N")
      ->transform(whole_number(0, kMaxCount))
      ->capture_default_str()
      ->group(kCheckpoints);
  app.add_option("--save_secs", flags.save_secs,
                 "seconds between checkpoints; 0: by steps only. Without `--train_dir` the chief "
                 "keeps the newest in memory")
      ->type_name("SECONDS")
      ->transform(whole_number(0, kDaySeconds))
      ->capture_default_str()
      ->group(kCheckpoints);
  app.add_option("--max_to_keep", flags.max_to_keep, "checkpoints to keep; 0: all")
      ->type_name("N")
      ->transform(whole_number(0, kMaxCount))
      ->capture_default_str()
      ->group(kCheckpoints);
  app.add_flag(
         "--sharded_checkpoint", flags.sharded_checkpoint,
         "each ps writes its range to its `--train_dir`, a directory that chief and ps must share")
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
               "print [precision and recall of each class](training.md#results), and which "
               "classes are confused")
      ->transform(boolean())
      ->group(kOutput);
  app.add_option("--evaluator_secs", flags.evaluator_secs,
                 "[evaluator](evaluator.md): least seconds between the starts of two evaluations; "
                 "0: no pause")
      ->type_name("SECONDS")
      ->transform(whole_number(0, kDaySeconds))
      ->capture_default_str()
      ->group(kOutput);
  app.add_option(
         "--keep_best", flags.keep_best,
         "evaluator: keep the checkpoint with the best validation `accuracy`, `loss`, "
         "`absolute_error` or `squared_error` in `best` below `--train_dir` [none is marked]")
      ->type_name("NAME")
      ->check(one_of({"accuracy", "loss", "absolute_error", "squared_error"}))
      ->group(kOutput);
  app.add_option("--metrics_file", flags.metrics_file,
                 "file to which chief and evaluator append a line of [JSON](training.md#results) "
                 "per evaluation")
      ->type_name("FILE")
      ->group(kOutput);
  app.add_option("--log_dir", flags.log_dir,
                 "directory, or URL in [a store](stores.md), for the chief's "
                 "[TensorBoard](tensorboard.md) files [`--train_dir`, if it is a directory]")
      ->type_name("DIR")
      ->group(kOutput);
  app.add_option("--summary_every", flags.summary_every,
                 "TensorBoard: global steps between summaries of a step; 0: none")
      ->type_name("N")
      ->transform(whole_number(0, kMaxCount))
      ->capture_default_str()
      ->group(kOutput);
  app.add_option("--histogram_every", flags.histogram_every,
                 "TensorBoard: global steps between histograms of weights and gradients; 0: only "
                 "at evaluations")
      ->type_name("N")
      ->transform(whole_number(0, kMaxCount))
      ->capture_default_str()
      ->group(kOutput);
}

void add_on_finish(CLI::App& app, Flags& flags) {
  app.add_option("--on_finish", flags.on_finish,
                 "`idle`: after the result wait for SIGTERM or SIGINT, then exit 0; for engines "
                 "that restart every task that exits")
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
  // These two take only data sets that have a name.
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
  app.add_option("--data_dir", flags.data_dir,
                 "directory of the data set and its conversions; or [a bucket's "
                 "URL](stores.md#data), whose files are copied to `./input_data`")
      ->type_name("DIR")
      ->capture_default_str()
      ->group(kData);
  app.add_option_function<std::vector<std::string>>(
         "--data_url",
         [&flags](const std::vector<std::string>& texts) {
           flags.data_url = split_at_commas(texts);
         },
         "http or https folders to download from, tried in order, instead of the two built-in "
         "mirrors")
      ->type_name("URL,...")
      ->check(comma_list_of(url()))
      ->group(kData);
  app.add_option("--ca_file", flags.ca_file,
                 "trusted certificate authorities, PEM [the system's file]")
      ->type_name("FILE")
      ->group(kData);
  app.add_option("--download_timeout", flags.download_timeout_s,
                 "seconds for all downloads together")
      ->type_name("SECONDS")
      ->transform(whole_number(1, kDaySeconds))
      ->capture_default_str()
      ->group(kData);
}

void add_timeouts(CLI::App& app, Flags& flags) {
  add_timeout(app, "--start_timeout", flags.start_timeout_s, 1,
              "wait for tasks that never connected");
  add_timeout(app, "--peer_timeout", flags.peer_timeout_s, 1, "wait for a lost chief or ps");
  add_timeout(app, "--worker_timeout", flags.worker_timeout_s, 1, "sync: wait for a lost worker");
  add_heartbeat_timeout(app, flags);
}

void add_transport(CLI::App& app, Command command, Flags& flags) {
  add_credential_flags(app, command, flags);
  app.add_option("--transport", flags.transport,
                 "transport of tensors: `auto`: shared memory between tasks of one machine, else "
                 "`tcp`; `shm`: shared memory only. A ps with `tcp` shares no memory")
      ->type_name("NAME")
      ->check(one_of({"auto", "tcp", "shm"}))
      ->capture_default_str()
      ->group(kTransportGroup);
}

void add_threads(CLI::App& app, Flags& flags) {
  app.add_option("--threads", flags.threads,
                 "threads for gradients or updates; they do not affect the result. `0`: one for a "
                 "trainer, for a ps its usable CPUs up to 4")
      ->type_name("N")
      ->transform(whole_number(0, kMostThreads))
      ->capture_default_str()
      ->group(kTransportGroup);
}

void add_log(CLI::App& app, Flags& flags) {
  app.add_option("--log_level", flags.log_level,
                 "least severe level to log: `debug`, `info`, `warning`, `error`, `off`")
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
               "[sandbox](operations.md#sandbox) the process with Landlock and "
               "seccomp, as far as the kernel supports them [true]")
      ->transform(boolean())
      ->group(kConfinement);
}

void add_testing(CLI::App& app, Flags& flags) {
  app.add_option("--debug_delay_ms", flags.debug_delay_ms,
                 "delay each push by a random time of up to N ms")
      ->type_name("N")
      ->transform(whole_number(0, kDaySeconds))
      ->capture_default_str()
      ->group(kTesting);
  app.add_option("--chaos_frames", flags.chaos_frames,
                 "`SEED,RATE`: drop, truncate, delay, repeat or reorder RATE of 1000 frames "
                 "between trainers and ps, chosen by SEED")
      ->type_name("SEED,RATE")
      ->check(seed_and_rate())
      ->group(kTesting);
  app.add_option("--debug_attempts", flags.debug_attempts,
                 "list of `open:FILE`, `connect:ADDRESS:PORT` (IPv4) and `exec:PROGRAM` to try "
                 "inside [the sandbox](operations.md#sandbox); the results are logged")
      ->type_name("LIST")
      ->check(attempts())
      ->group(kTesting);
}

}  // namespace disttf
