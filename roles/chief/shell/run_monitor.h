// What is known of a run, as records (roles/monitor/core/record.h): of the chief itself, and what
// all tasks tell it over the ps. They go to the launch that started this chief, if one did, and to
// a file below --train_dir. Also says in the log who has been slow for some time, and writes the
// timelines that are asked for.
//
// Whoever tells it something never waits for a reader or a disk: a thread of its own writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "math/evaluation.h"
#include "roles/monitor/core/record.h"
#include "roles/run/run_config.h"
#include "roles/run/task.h"

namespace disttf::roles {

class RunMonitor {
 public:
  struct Options {
    int progress_fd = -1;                  // where `launch` reads; -1: nowhere
    std::filesystem::path train_dir = {};  // empty: no file
    // Gets each record, too; on the monitor's thread. Empty: nobody.
    std::function<void(const std::string& line)> also = {};
    // How many steps somebody wants a timeline of; 0: nobody does. Empty: nobody ever will.
    std::function<std::uint32_t()> take_trace_request = {};
    // All tasks are to be told to tell these steps; of none: no more. Both on the monitor's thread.
    std::function<void(const StepWindow&)> trace = {};
  };

  // `task` must outlive it. Starts the thread.
  RunMonitor(const Task& task, const RunConfig& config, const Options& options);
  ~RunMonitor();  // what has been told is written first, for at most a second
  RunMonitor(const RunMonitor&) = delete;
  RunMonitor& operator=(const RunMonitor&) = delete;

  // All of these from any thread.

  // Training begins, or goes on, at that step.
  void begins(const RunRecord& run);
  // `step` has been made; `loss`: of the chief's batch. As often as there are steps.
  void made(std::uint64_t step, double loss) noexcept;
  void evaluated(std::uint64_t step, const math::Evaluation& validation,
                 const math::Evaluation& test, bool is_last);
  // Records that somebody else has made.
  void add(const std::vector<std::string>& lines);
  void saved(const CheckpointRecord& checkpoint);
  void ended(const ResultRecord& result);
  // What ps `index` has answered: its own text, then those of trainers.
  void told(std::size_t index, const std::vector<std::string>& texts);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace disttf::roles
