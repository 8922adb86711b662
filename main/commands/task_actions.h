// The actions of tasks and of the processes that start them, which several commands share: what
// `train` runs follows from the cluster.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "main/commands/command.h"
#include "roles/evaluator/evaluator.h"
#include "roles/launch/shell/launcher.h"
#include "roles/trainer/shell/trainer.h"
#include "run/monitor/shell/metrics_address.h"

namespace disttf {

// An action of a process that exports metrics if a flag asks for them.
template <typename Options>
class MeteredAction : public Action {
 public:
  MeteredAction(Options given, roles::MetricsOptions given_metrics)
      : options(std::move(given)), metrics(std::move(given_metrics)) {}

  Options options;
  roles::MetricsOptions metrics;
};

// ps, worker or chief, as options.task says.
class RunTask : public MeteredAction<roles::TrainerOptions> {
 public:
  using MeteredAction::MeteredAction;
  [[nodiscard]] int run() override;
  [[nodiscard]] roles::ProcessKind kind() const override;
  [[nodiscard]] std::optional<roles::SandboxPolicy> sandbox(
      const net::Environment& environment) const override;
};

// train --existing_servers
class RunDriver : public MeteredAction<roles::TrainerOptions> {
 public:
  using MeteredAction::MeteredAction;
  [[nodiscard]] int run() override;
  [[nodiscard]] roles::ProcessKind kind() const override { return roles::ProcessKind::kTrainer; }
  [[nodiscard]] std::optional<roles::SandboxPolicy> sandbox(
      const net::Environment& environment) const override;
};

class RunEvaluator : public MeteredAction<roles::EvaluatorOptions> {
 public:
  using MeteredAction::MeteredAction;
  [[nodiscard]] int run() override;
  [[nodiscard]] roles::ProcessKind kind() const override { return roles::ProcessKind::kEvaluator; }
  [[nodiscard]] std::optional<roles::SandboxPolicy> sandbox(
      const net::Environment& environment) const override;
};

// A launch of disttf's own tasks.
[[nodiscard]] std::unique_ptr<Action> run_launch(roles::LaunchOptions options);
// A download of the data set alone.
[[nodiscard]] std::unique_ptr<Action> run_download(roles::DataOptions data);

}  // namespace disttf
