// Collects a timeline (trace.h): chooses its steps, and decides until when tasks report them.
// Chooses future steps, because a task keeps only steps that it was asked to keep, far enough ahead
// that all tasks have the request by then.
//
// Values; not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/wire/cluster.h"
#include "run/monitor/core/trace.h"

namespace disttf::roles {

class TraceCollector {
 public:
  using Clock = std::chrono::steady_clock;
  struct Result {
    std::optional<Trace> trace;
    std::string why_not;  // why there is none
  };

  // `cluster` must outlive it and its results. `train_steps`: those of the run.
  TraceCollector(const net::Cluster& cluster, std::uint64_t train_steps)
      : cluster_(cluster), train_steps_(train_steps) {}

  // Requests a timeline of so many steps, after the present one, if any.
  void ask(std::uint64_t steps);
  // The report of a task. REQUIRES: the task is of the cluster.
  template <typename Metrics>
  void told(const Metrics& metrics) {
    if (trace_) {
      trace_->told(metrics);
    }
  }
  // Which trainers take part now, by rank.
  void record_present(const std::vector<bool>& present);
  // The run was rolled back to an earlier state.
  void roll_back();

  // To be called a few times a second. `step`: of the run.
  [[nodiscard]] std::optional<Result> look(std::uint64_t step, Clock::time_point now);
  // The run has ended.
  [[nodiscard]] std::optional<Result> end();
  // The steps that all tasks must report now; empty: none.
  [[nodiscard]] StepWindow window() const { return trace_ ? trace_->window() : StepWindow{}; }

 private:
  [[nodiscard]] std::optional<Result> begin(std::uint64_t step, Clock::time_point now);
  [[nodiscard]] Result finish();

  const net::Cluster& cluster_;
  const std::uint64_t train_steps_;
  std::uint64_t wanted_ = 0;  // steps of the next one
  // The start of the measurement of the run's speed.
  std::optional<Clock::time_point> seen_at_;
  std::uint64_t seen_step_ = 0;
  std::vector<bool> present_;                   // by rank; empty: unknown
  std::optional<Trace> trace_;                  // being collected
  std::optional<Clock::time_point> passed_at_;  // when its last step was complete
  bool is_rolled_back_ = false;
};

}  // namespace disttf::roles
