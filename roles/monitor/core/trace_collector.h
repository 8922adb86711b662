// Brings a timeline (trace.h) about: which steps it is to be of, until when the tasks have told
// them. Steps that are to come, since a task keeps those only that it was told to keep; far enough
// ahead that all have been told by then.
//
// Values; not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/wire/cluster.h"
#include "roles/monitor/core/trace.h"

namespace disttf::roles {

class TraceCollector {
 public:
  using Clock = std::chrono::steady_clock;
  struct Result {
    std::optional<Trace> trace;
    std::string why_not;  // there is none
  };

  // `cluster` must outlive it, and its results. `train_steps`: those of the run.
  TraceCollector(const net::Cluster& cluster, std::uint64_t train_steps)
      : cluster_(cluster), train_steps_(train_steps) {}

  // Somebody wants a timeline of so many steps; where there is one under way, after that.
  void ask(std::uint64_t steps);
  // What a task has told. REQUIRES: the task is of the cluster.
  template <typename Metrics>
  void told(const Metrics& metrics) {
    if (trace_) {
      trace_->told(metrics);
    }
  }
  // By rank, which trainers take part now.
  void told_present(const std::vector<bool>& present);
  // The run goes on from a state of before.
  void set_back();

  // To be called a few times a second. `step`: where the run is.
  [[nodiscard]] std::optional<Result> look(std::uint64_t step, Clock::time_point now);
  // The run has ended.
  [[nodiscard]] std::optional<Result> end();
  // What all tasks are to be told to tell now; of none: nothing.
  [[nodiscard]] StepWindow window() const { return trace_ ? trace_->window() : StepWindow{}; }

 private:
  [[nodiscard]] std::optional<Result> begin(std::uint64_t step, Clock::time_point now);
  [[nodiscard]] Result finish();

  const net::Cluster& cluster_;
  const std::uint64_t train_steps_;
  std::uint64_t wanted_ = 0;  // steps of the next one
  // How fast steps are made is seen from here on.
  std::optional<Clock::time_point> seen_at_;
  std::uint64_t seen_step_ = 0;
  std::vector<bool> present_;                   // by rank; empty: not known
  std::optional<Trace> trace_;                  // under way
  std::optional<Clock::time_point> passed_at_;  // when its last step had been made
  bool is_set_back_ = false;
};

}  // namespace disttf::roles
