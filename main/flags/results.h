// The flags that say where a run leaves its checkpoints, results and summaries.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>

#include "main/setting_flags.h"
#include "run/output_options.h"

namespace disttf {

struct CheckpointFlags {
  std::string train_dir;
  std::uint64_t save_steps = 0;
  std::uint64_t save_secs = 10;
  std::uint64_t max_to_keep = 5;
  bool sharded = false;

  void add_to(CLI::App& app);
  [[nodiscard]] roles::CheckpointOptions options() const;
};

// Evaluation, results, TensorBoard.
struct OutputFlags {
  std::uint64_t log_every = 500;
  bool print_weights_hash = false;
  bool print_classes = false;
  std::uint64_t evaluator_secs = 10;
  std::string keep_best;  // empty: none
  std::string metrics_file;
  std::string log_dir;  // empty: --train_dir
  std::uint64_t summary_every = 100;
  std::uint64_t histogram_every = 0;
  std::string on_finish = "exit";

  // Adds the settings of this group, too.
  void add_to(CLI::App& app, WrittenSettings& settings);
  // --on_finish, of tasks alone.
  void add_on_finish(CLI::App& app);

  // Where the chief writes for TensorBoard: --log_dir, else `train_dir` if that is a directory.
  // Empty: nowhere.
  [[nodiscard]] std::string summary_directory(const std::string& train_dir) const;
};

// Throws std::invalid_argument with one sentence: the flag, its value, what is allowed.
void check_places(const CheckpointFlags& checkpoints, const OutputFlags& output);

}  // namespace disttf
