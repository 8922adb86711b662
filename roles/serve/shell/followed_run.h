// The models of a running cluster, collected from its ps: one consistent state after the other,
// each of one step, which is its version. Like an evaluator, it does not affect the run.
//
// The result of the run is always collected, as the last state. While the ps are unreachable the
// present models stay. A run that was rolled back to an earlier step withdraws later versions.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "roles/serve/shell/model_registry.h"
#include "roles/serve/shell/serve_command.h"
#include "run/process/stop_signal.h"
#include "run/watch/snapshot_collector.h"

namespace disttf::roles {

class FollowedRun final : public ModelSource {
 public:
  // All arguments must outlive it. `keep`: the most versions at once. `stop` receives what ends the
  // service: a ps that refuses it before there is a model, or a run that ended without one.
  FollowedRun(const FollowOptions& options, std::size_t keep, ModelRegistry& registry,
              StopSignal& stop);

  void look() override;

 private:
  void report_ps();
  void take(TrainedModel snapshot);
  void put_first(const std::shared_ptr<const LoadedModel>& model);
  void report_end();
  [[nodiscard]] std::string what_answers() const;

  const FollowOptions& options_;
  const std::size_t keep_;
  ModelRegistry& registry_;
  StopSignal& stop_;
  bool has_result_ = false;
  bool has_ended_ = false;
  bool is_asked_ = false;                       // a request to the collector is open
  std::chrono::steady_clock::time_point next_;  // the earliest time of the next request
  std::string reported_gone_;                   // the logged reason why ps are unreachable
  SnapshotCollector collector_;
};

}  // namespace disttf::roles
