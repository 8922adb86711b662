// A timeline of some steps of a run: what each task did when, what travelled between them, and what
// led to what. As text it is what chrome://tracing and ui.perfetto.dev open: the JSON of
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event
// Format), with durations ("X"), flows ("s", "t", "f") and names ("M").
//
// Each task tells its steps by its own clock. Tasks with one clock need nothing. Of two clocks the
// steps themselves say how far they are apart: a gradient is not whole at a ps before the trainer
// has computed it, and parameters do not come before the ps has made them. Each step so bounds the
// difference from both sides; the middle of what all bounds leave is taken, and half of its width
// is the error that is told.
//
// Values; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/wire/cluster.h"
#include "roles/monitor/core/step_sampling.h"
#include "roles/monitor/core/task_metrics.h"

namespace disttf::roles {

class Trace {
 public:
  // How many steps of so many tasks are told at most: a file of about 100 MB.
  [[nodiscard]] static std::uint64_t most_steps(std::size_t trainers, std::size_t ps) noexcept;

  // `cluster` must outlive it.
  Trace(const net::Cluster& cluster, const StepWindow& window);

  // What a task has told. REQUIRES: the task is of the cluster.
  void told(const TrainerMetrics& metrics);
  void told(const PsMetrics& metrics);
  // By rank, which trainers take part now. Once called, a trainer that has never taken part is not
  // waited for, and is not missing: with --max_workers most may never come.
  void told_present(const std::vector<bool>& present);

  [[nodiscard]] const StepWindow& window() const noexcept { return window_; }
  // All tasks have told all that there will be.
  [[nodiscard]] bool is_complete() const noexcept;
  // Those that have not, "worker:2".
  [[nodiscard]] std::vector<std::string> missing() const;
  [[nodiscard]] bool empty() const noexcept;  // nobody has told a step

  // How far off the times of two tasks may be, at most; 0 where all have one clock. nullopt: of
  // some task nothing is known that another has seen.
  [[nodiscard]] std::optional<double> clock_error_seconds() const;
  // The whole text.
  [[nodiscard]] std::string json() const;

 private:
  template <typename Sample>
  struct Told {
    std::vector<Sample> steps;
    std::string clock;
    bool is_complete = false;
  };
  // Of a task's clock, in nanoseconds: by how much it is ahead of that of ps 0.
  struct Offset {
    std::int64_t ahead = 0;
    std::int64_t error = 0;
    bool is_known = false;
  };
  // By how much a ps's clock is ahead of a trainer's.
  struct Bounds {
    std::int64_t least;
    std::int64_t most;
  };
  class Writer;

  [[nodiscard]] bool is_awaited(std::size_t rank) const noexcept;
  template <typename Metrics, typename Sample>
  void take(const Metrics& metrics, Told<Sample>& told);
  // Of each task, ps first.
  [[nodiscard]] std::vector<Offset> offsets() const;
  [[nodiscard]] std::optional<Bounds> bounds(std::size_t rank, std::size_t ps) const;
  void write_trainer(Writer& out, std::size_t rank, const Offset& offset) const;
  void write_ps(Writer& out, std::size_t index, const std::vector<Offset>& offsets) const;
  void write_travel(Writer& out, std::size_t index, const RangeSample& step, std::size_t rank,
                    const std::vector<Offset>& offsets) const;
  [[nodiscard]] const TrainerSample* step_of(std::size_t rank, std::uint64_t step) const;

  const net::Cluster* cluster_;
  StepWindow window_;
  std::vector<Told<TrainerSample>> trainers_;  // by rank
  std::vector<Told<RangeSample>> ps_;
  std::vector<bool> took_part_;  // by rank; empty: not known
};

}  // namespace disttf::roles
