#include "main/flags/results.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <stdexcept>
#include <string_view>

#include "main/flag_values.h"
#include "main/flags/flag_group.h"
#include "run/run_config.h"
#include "storage/store/core/store_url.h"
#include "storage/store/shell/storage.h"

namespace disttf {
namespace {

constexpr const char* kCheckpoints =
    "Checkpoints (the chief's values apply; a ps that writes needs --train_dir)";
constexpr const char* kOutput = "Evaluation and results";

using roles::kMaxCount;

}  // namespace

void CheckpointFlags::add_to(CLI::App& app) {
  FlagGroup add(app, kCheckpoints);
  add.text("--train_dir", train_dir, "DIR",
           "directory for checkpoints, or [a store's URL](stores.md): `s3://BUCKET/PREFIX`, "
           "`gs://BUCKET/PREFIX`, `hdfs://NAMENODE/PATH`; a run continues from its newest "
           "complete checkpoint");
  add.number("--save_steps", save_steps, "N", 0, kMaxCount,
             "global steps between checkpoints; 0: by time only");
  add.number("--save_secs", save_secs, "SECONDS", 0, kDaySeconds,
             "seconds between checkpoints; 0: by steps only. Without `--train_dir` the chief "
             "keeps the newest in memory");
  add.number("--max_to_keep", max_to_keep, "N", 0, kMaxCount, "checkpoints to keep; 0: all");
  add.toggle(
      "--sharded_checkpoint", sharded,
      "each ps writes its range to its `--train_dir`, a directory that chief and ps must share");
}

roles::CheckpointOptions CheckpointFlags::options() const {
  return {.train_dir = train_dir,
          .save_steps = save_steps,
          .save_secs = std::chrono::seconds(save_secs),
          .max_to_keep = max_to_keep,
          .sharded = sharded};
}

void OutputFlags::add_to(CLI::App& app, WrittenSettings& settings) {
  FlagGroup add(app, kOutput);
  add_setting_flags(app, roles::SettingGroup::kOutput, kOutput, settings);
  add.number("--log_every", log_every, "N", 0, kMaxCount, "local steps between log lines; 0: none");
  add.toggle("--print_weights_hash", print_weights_hash, "print the SHA-256 of the final weights");
  add.toggle("--print_classes", print_classes,
             "print [precision and recall of each class](training.md#results), and which "
             "classes are confused");
  add.number("--evaluator_secs", evaluator_secs, "SECONDS", 0, kDaySeconds,
             "[evaluator](evaluator.md): least seconds between the starts of two evaluations; "
             "0: no pause");
  add.choice("--keep_best", keep_best, "NAME",
             {"accuracy", "loss", "absolute_error", "squared_error"},
             "evaluator: keep the checkpoint with the best validation `accuracy`, `loss`, "
             "`absolute_error` or `squared_error` in `best` below `--train_dir` [none is marked]");
  add.text("--metrics_file", metrics_file, "FILE",
           "file to which chief and evaluator append a line of [JSON](training.md#results) "
           "per evaluation");
  add.text("--log_dir", log_dir, "DIR",
           "directory, or URL in [a store](stores.md), for the chief's "
           "[TensorBoard](tensorboard.md) files [`--train_dir`, if it is a directory]");
  add.number("--summary_every", summary_every, "N", 0, kMaxCount,
             "TensorBoard: global steps between summaries of a step; 0: none");
  add.number("--histogram_every", histogram_every, "N", 0, kMaxCount,
             "TensorBoard: global steps between histograms of weights and gradients; 0: only "
             "at evaluations");
}

void OutputFlags::add_on_finish(CLI::App& app) {
  FlagGroup add(app, kOutput);
  add.choice("--on_finish", on_finish, "NAME", {"exit", "idle"},
             "`idle`: after the result wait for SIGTERM or SIGINT, then exit 0; for engines "
             "that restart every task that exits");
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
