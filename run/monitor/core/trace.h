// A timeline of some steps of a run: the stages of each task, the transfers between tasks, and
// their dependencies. The text is for chrome://tracing and ui.perfetto.dev: the JSON of
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event
// Format), with durations ("X"), flows ("s", "t", "f") and names ("M").
//
// Each task reports its steps by its own clock. Tasks with a common clock need no correction. For
// two clocks the steps themselves bound the difference: a gradient is not complete at a ps before
// the trainer has computed it, and parameters do not arrive before the ps has computed them. So
// each step bounds the difference from both sides. The middle of the remaining interval is used,
// and half of its width is the reported error.
//
// Values; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/wire/cluster.h"
#include "run/monitor/core/step_sampling.h"
#include "run/monitor/core/task_metrics.h"

namespace disttf::roles {

class Trace {
 public:
  // The most steps in a timeline of so many tasks: a file of about 100 MB.
  [[nodiscard]] static std::uint64_t most_steps(std::size_t trainers, std::size_t ps) noexcept;

  // `cluster` must outlive it.
  Trace(const net::Cluster& cluster, const StepWindow& window);

  // The report of a task. REQUIRES: the task is of the cluster.
  void told(const TrainerMetrics& metrics);
  void told(const PsMetrics& metrics);
  // Which trainers take part now, by rank. Once called, a trainer that has never taken part is
  // neither waited for nor missing: with --max_workers most may never join.
  void record_present(const std::vector<bool>& present);

  [[nodiscard]] const StepWindow& window() const noexcept { return window_; }
  // Whether all tasks have reported all their steps.
  [[nodiscard]] bool is_complete() const noexcept;
  // The tasks that have not, such as "worker:2".
  [[nodiscard]] std::vector<std::string> missing() const;
  [[nodiscard]] bool empty() const noexcept;  // no task has reported a step

  // The largest error between the times of two tasks; 0 if all have a common clock. nullopt: no
  // bound for some task is known.
  [[nodiscard]] std::optional<double> clock_error_seconds() const;
  // The whole file.
  [[nodiscard]] std::string json() const;

 private:
  template <typename Sample>
  struct ReportedSamples {
    std::vector<Sample> steps;
    std::string clock;
    bool is_complete = false;
  };
  // By how much a task's clock is ahead of that of ps 0, in nanoseconds.
  struct Offset {
    std::int64_t ahead = 0;
    std::int64_t error = 0;
    bool is_known = false;
  };
  // Bounds of how much a ps's clock is ahead of a trainer's.
  struct Bounds {
    std::int64_t least;
    std::int64_t most;
  };
  class Writer;

  [[nodiscard]] bool is_awaited(std::size_t rank) const noexcept;
  template <typename Metrics, typename Sample>
  void take(const Metrics& metrics, ReportedSamples<Sample>& told);
  // The offset of each task, ps first.
  [[nodiscard]] std::vector<Offset> offsets() const;
  [[nodiscard]] std::optional<Bounds> bounds(std::size_t rank, std::size_t ps) const;
  void write_trainer(Writer& out, std::size_t rank, const Offset& offset) const;
  void write_ps(Writer& out, std::size_t index, const std::vector<Offset>& offsets) const;
  void write_travel(Writer& out, std::size_t index, const RangeSample& step, std::size_t rank,
                    const std::vector<Offset>& offsets) const;
  [[nodiscard]] const TrainerSample* step_of(std::size_t rank, std::uint64_t step) const;

  const net::Cluster* cluster_;
  StepWindow window_;
  std::vector<ReportedSamples<TrainerSample>> trainers_;  // by rank
  std::vector<ReportedSamples<RangeSample>> ps_;
  std::vector<bool> took_part_;  // by rank; empty: unknown
};

}  // namespace disttf::roles
