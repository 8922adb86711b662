// The models of a run that goes on, from its ps: one cut after the other, each of one step, which
// is its version. The run neither waits for this nor knows of it, as of an evaluator.
//
// The result of the run is never left out, and the last one that is looked for. While the ps are
// away what has come goes on answering. A run that was set back to an earlier step takes its later
// versions with it.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "roles/process/stop_signal.h"
#include "roles/serve/shell/model_shelf.h"
#include "roles/serve/shell/serve_options.h"
#include "roles/watch/shell/cut_collector.h"

namespace disttf::roles {

class FollowedRun final : public ModelSource {
 public:
  // All must outlive it. `keep`: so many versions at once. What ends the service is told `stop`: a
  // ps that refuses it before there is a model, or a run that has ended without leaving one.
  FollowedRun(const FollowOptions& options, std::size_t keep, ModelShelf& shelf, StopSignal& stop);

  void look() override;

 private:
  void tell_of_ps();
  void take(TrainedModel cut);
  void put_first(const std::shared_ptr<const LoadedModel>& model);
  void tell_end();
  [[nodiscard]] std::string what_answers() const;

  const FollowOptions& options_;
  const std::size_t keep_;
  ModelShelf& shelf_;
  StopSignal& stop_;
  bool has_result_ = false;
  bool has_ended_ = false;
  bool is_asked_ = false;                       // the collector is
  std::chrono::steady_clock::time_point next_;  // not before that
  std::string told_gone_;                       // why the ps are away
  CutCollector collector_;
};

}  // namespace disttf::roles
