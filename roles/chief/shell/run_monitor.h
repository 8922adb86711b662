// The telemetry of a run, as records (run/monitor/core/record.h): of the chief itself, and what
// all tasks report over the ps. The records go to the launch that started this chief, if one did,
// and to a file below --train_dir. It also logs which task has been slow for some time, and writes
// requested timelines.
//
// Callers never wait for a reader or a disk: a separate thread writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "math/evaluation.h"
#include "run/monitor/core/record.h"
#include "run/run_config.h"
#include "run/task.h"

namespace disttf::roles {

class RunMonitor {
 public:
  struct Options {
    int progress_fd = -1;                  // where `launch` reads; -1: none
    std::filesystem::path train_dir = {};  // empty: no file
    // Receives each record, too, on the monitor's thread; may be empty.
    std::function<void(const std::string& line)> also = {};
    // Of the chief's program.
    std::map<std::string, std::string> fingerprint = {};
    // Returns how many steps a timeline was requested for; 0: none. Empty: there are no requests.
    std::function<std::uint32_t()> take_trace_request = {};
    // Sends all tasks this window of steps to trace; an empty window ends that. Both are called on
    // the monitor's thread.
    std::function<void(const StepWindow&)> trace = {};
  };

  // `task` must outlive it. Starts the thread.
  RunMonitor(const Task& task, const RunConfig& config, const Options& options);
  ~RunMonitor();  // writes pending records first, for at most a second
  RunMonitor(const RunMonitor&) = delete;
  RunMonitor& operator=(const RunMonitor&) = delete;

  // All of these are callable from any thread.

  // Training begins, or goes on, at that step.
  void begins(const RunRecord& run);
  // `step` has been made; `loss` and a program's `numbers`: of the chief's batch. May be called in
  // every step; allocates for numbers only.
  void made(std::uint64_t step, double loss, std::span<const math::ToldNumber> numbers = {});
  void evaluated(std::uint64_t step, const math::Evaluation& validation,
                 const math::Evaluation& test, bool is_last);
  // Adds records made elsewhere.
  void add(const std::vector<std::string>& lines);
  void saved(const CheckpointRecord& checkpoint);
  void ended(const ResultRecord& result);
  // The answer of ps `index`: its own metrics, then those of trainers.
  void told(std::size_t index, const std::vector<std::string>& texts);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace disttf::roles
