#include "main/flags/results.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <stdexcept>
#include <string_view>

#include "main/flag_values.h"
#include "roles/run/run_config.h"
#include "roles/store/core/store_url.h"
#include "roles/store/shell/storage.h"

namespace disttf {
namespace {

constexpr const char* kCheckpoints =
    "Checkpoints (the chief's values apply; a ps that writes needs --train_dir)";
constexpr const char* kOutput = "Evaluation and results";

using roles::kMaxCount;

}  // namespace

void CheckpointFlags::add_to(CLI::App& app) {
  app.add_option("--train_dir", train_dir,
                 "directory for checkpoints, or [a store's URL](stores.md): `s3://BUCKET/PREFIX`, "
                 "`gs://BUCKET/PREFIX`, `hdfs://NAMENODE/PATH`; a run continues from its newest "
                 "complete checkpoint")
      ->type_name("DIR")
      ->group(kCheckpoints);
  app.add_option("--save_steps", save_steps, "global steps between checkpoints; 0: by time only")
      ->type_name("N")
      ->transform(whole_number(0, kMaxCount))
      ->capture_default_str()
      ->group(kCheckpoints);
  app.add_option("--save_secs", save_secs,
                 "seconds between checkpoints; 0: by steps only. Without `--train_dir` the chief "
                 "keeps the newest in memory")
      ->type_name("SECONDS")
      ->transform(whole_number(0, kDaySeconds))
      ->capture_default_str()
      ->group(kCheckpoints);
  app.add_option("--max_to_keep", max_to_keep, "checkpoints to keep; 0: all")
      ->type_name("N")
      ->transform(whole_number(0, kMaxCount))
      ->capture_default_str()
      ->group(kCheckpoints);
  app.add_flag(
         "--sharded_checkpoint", sharded,
         "each ps writes its range to its `--train_dir`, a directory that chief and ps must share")
      ->transform(boolean())
      ->group(kCheckpoints);
}

roles::CheckpointOptions CheckpointFlags::options() const {
  return {.train_dir = train_dir,
          .save_steps = save_steps,
          .save_secs = std::chrono::seconds(save_secs),
          .max_to_keep = max_to_keep,
          .sharded = sharded};
}

void OutputFlags::add_to(CLI::App& app, WrittenSettings& settings) {
  add_setting_flags(app, roles::SettingGroup::kOutput, kOutput, settings);
  app.add_option("--log_every", log_every, "local steps between log lines; 0: none")
      ->type_name("N")
      ->transform(whole_number(0, kMaxCount))
      ->capture_default_str()
      ->group(kOutput);
  app.add_flag("--print_weights_hash", print_weights_hash, "print the SHA-256 of the final weights")
      ->transform(boolean())
      ->group(kOutput);
  app.add_flag("--print_classes", print_classes,
               "print [precision and recall of each class](training.md#results), and which "
               "classes are confused")
      ->transform(boolean())
      ->group(kOutput);
  app.add_option("--evaluator_secs", evaluator_secs,
                 "[evaluator](evaluator.md): least seconds between the starts of two evaluations; "
                 "0: no pause")
      ->type_name("SECONDS")
      ->transform(whole_number(0, kDaySeconds))
      ->capture_default_str()
      ->group(kOutput);
  app.add_option(
         "--keep_best", keep_best,
         "evaluator: keep the checkpoint with the best validation `accuracy`, `loss`, "
         "`absolute_error` or `squared_error` in `best` below `--train_dir` [none is marked]")
      ->type_name("NAME")
      ->check(one_of({"accuracy", "loss", "absolute_error", "squared_error"}))
      ->group(kOutput);
  app.add_option("--metrics_file", metrics_file,
                 "file to which chief and evaluator append a line of [JSON](training.md#results) "
                 "per evaluation")
      ->type_name("FILE")
      ->group(kOutput);
  app.add_option("--log_dir", log_dir,
                 "directory, or URL in [a store](stores.md), for the chief's "
                 "[TensorBoard](tensorboard.md) files [`--train_dir`, if it is a directory]")
      ->type_name("DIR")
      ->group(kOutput);
  app.add_option("--summary_every", summary_every,
                 "TensorBoard: global steps between summaries of a step; 0: none")
      ->type_name("N")
      ->transform(whole_number(0, kMaxCount))
      ->capture_default_str()
      ->group(kOutput);
  app.add_option("--histogram_every", histogram_every,
                 "TensorBoard: global steps between histograms of weights and gradients; 0: only "
                 "at evaluations")
      ->type_name("N")
      ->transform(whole_number(0, kMaxCount))
      ->capture_default_str()
      ->group(kOutput);
}

void OutputFlags::add_on_finish(CLI::App& app) {
  app.add_option("--on_finish", on_finish,
                 "`idle`: after the result wait for SIGTERM or SIGINT, then exit 0; for engines "
                 "that restart every task that exits")
      ->type_name("NAME")
      ->check(one_of({"exit", "idle"}))
      ->capture_default_str()
      ->group(kOutput);
}

std::string OutputFlags::summary_directory(const std::string& train_dir) const {
  if (!log_dir.empty()) {
    return log_dir;
  }
  return roles::is_store_url(std::string_view(train_dir)) ? "" : train_dir;
}

void check_places(const CheckpointFlags& checkpoints, const OutputFlags& output) {
  if (checkpoints.sharded && checkpoints.train_dir.empty()) {
    throw std::invalid_argument(
        "--sharded_checkpoint: true is not allowed without --train_dir, the directory that chief "
        "and ps share");
  }
  // A URL of an unknown or read-only store is reported before anything starts, not at the first
  // save.
  roles::check_place_to_write("--train_dir", checkpoints.train_dir);
  roles::check_place_to_write("--log_dir", output.log_dir);
}

}  // namespace disttf
