// The flags that the tasks of a run share, for the commands that are, start or render one.
#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "main/flags/addresses.h"
#include "main/flags/data.h"
#include "main/flags/network.h"
#include "main/flags/process.h"
#include "main/flags/results.h"
#include "main/flags/training.h"

namespace disttf {

struct RunFlags {
  TrainingFlags training;
  CheckpointFlags checkpoints;
  OutputFlags output;
  DataFlags data;
  TimeoutFlags timeouts;
  NetworkFlags network;
  roles::MetricsOptions metrics;
  bool confine = true;
  TestingFlags testing;

  // Adds those from training to network.
  void add_to(CLI::App& app, CredentialFlags::Of of);
  // Adds those that stand after the log's in the help.
  void add_last(CLI::App& app);

  // Throws std::invalid_argument, as TrainingFlags does.
  [[nodiscard]] roles::RunConfig run_config(std::size_t ps, std::size_t trainers) const;
  // As OutputFlags has it.
  [[nodiscard]] std::string summary_directory() const;
};

// The given flags as arguments for tasks, for the commands that start or render them.

// The given options as arguments for tasks: "--train_steps=100".
[[nodiscard]] std::vector<std::string> arguments_for_children(const CLI::App& app);
// The same for the processes that a server starts; the driver sets their timeouts.
[[nodiscard]] std::vector<std::string> arguments_for_tasks(const CLI::App& app);

}  // namespace disttf
