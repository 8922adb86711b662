#include "main/commands/task_actions.h"

#include <string>

#include "main/commands/sandbox_needs.h"
#include "main/version.h"
#include "math/denormals.h"
#include "math/kernels.h"
#include "roles/chief/shell/chief.h"
#include "roles/ps/shell/parameter_server.h"
#include "roles/servers/shell/driver.h"
#include "roles/trainer/shell/worker.h"
#include "run/outcome.h"
#include "run/process/stop_signal.h"
#include "storage/download/dataset_source.h"

namespace disttf {
namespace {

// The metrics of this process, if a flag asks for them. Must outlive the role that updates them.
class Exported {
 public:
  Exported(const roles::MetricsOptions& options, const std::string& task, math::Isa isa) {
    if (options.any()) {
      // The order of the members counts: the address reads the meters until its destructor has
      // written the last values.
      meters_.emplace(task, kVersion, math::isa_name(isa));
      address_.emplace(options, *meters_);
    }
  }
  [[nodiscard]] roles::Meters* meters() { return meters_ ? &*meters_ : nullptr; }
  [[nodiscard]] roles::MetricsAddress* address() { return address_ ? &*address_ : nullptr; }

 private:
  std::optional<roles::Meters> meters_;
  std::optional<roles::MetricsAddress> address_;
};

}  // namespace

int RunTask::run() {
  math::flush_denormals();  // before there is a second thread
  roles::Task& task = options.task;
  // On this frame: it outlives the role, and writes the last values after the role has ended.
  Exported exported(metrics, net::task_name(task.self), options.config.isa);
  task.meters = exported.meters();
  if (task.self.job == net::Job::kPs) {
    return roles::run_parameter_server(task, options.checkpoint.train_dir);
  }
  // Only the cluster decides: worker 0 is the chief if no chief task is listed.
  return task.cluster.is_chief(task.self) ? roles::run_chief(options) : roles::run_worker(options);
}

roles::ProcessKind RunTask::kind() const {
  return options.task.self.job == net::Job::kPs ? roles::ProcessKind::kPs
                                                : roles::ProcessKind::kTrainer;
}

std::optional<roles::SandboxPolicy> RunTask::sandbox(const net::Environment& environment) const {
  SandboxNeeds needs(environment);
  needs.metrics(metrics);
  if (options.task.self.job == net::Job::kPs) {
    needs.task(options.task);
    needs.change(options.checkpoint.train_dir);
  } else {
    const bool is_chief = options.task.cluster.is_chief(options.task.self);
    needs.trainer(options, is_chief);
    if (is_chief) needs.timelines(options.checkpoint);
  }
  return std::move(needs).take();
}

int RunDriver::run() {
  math::flush_denormals();  // before there is a second thread
  Exported exported(metrics, "chief:0", options.config.isa);
  options.task.meters = exported.meters();
  return roles::run_driver(options);
}

std::optional<roles::SandboxPolicy> RunDriver::sandbox(const net::Environment& environment) const {
  SandboxNeeds needs(environment);
  needs.metrics(metrics);
  needs.trainer(options, true);
  needs.timelines(options.checkpoint);
  // The driver listens as the chief, at a port that the system chooses after the sandbox is in
  // force.
  needs.listen(0);
  return std::move(needs).take();
}

int RunEvaluator::run() {
  math::flush_denormals();  // before there is a second thread
  roles::Task& task = options.trainer.task;
  Exported exported(metrics, net::task_name(task.self), math::supported_isas().front());
  task.meters = exported.meters();
  return roles::run_evaluator(options);
}

std::optional<roles::SandboxPolicy> RunEvaluator::sandbox(
    const net::Environment& environment) const {
  SandboxNeeds needs(environment);
  needs.metrics(metrics);
  // As a chief: an evaluator writes the best checkpoint and its summaries to the same folders.
  needs.trainer(options.trainer, true);
  return std::move(needs).take();
}

std::unique_ptr<Action> run_launch(roles::LaunchOptions options) {
  // Its supervisors, and their programs, inherit its filter.
  const roles::ProcessKind kind = options.program_command.empty() ? roles::ProcessKind::kLauncher
                                                                  : roles::ProcessKind::kPrograms;
  const auto run = [](const roles::LaunchOptions& given) {
    roles::LaunchOptions metered = given;
    // A launch computes nothing; the label must have some value.
    Exported exported(given.metrics, "launch", math::supported_isas().front());
    metered.meters = exported.meters();
    metered.metrics_address = exported.address();
    return roles::run_launcher(metered);
  };
  return run_with(std::move(options), run, kind);
}

std::unique_ptr<Action> run_download(roles::DataOptions data) {
  return run_with(std::move(data), [](const roles::DataOptions& options) -> int {
    const roles::StopSignal stop;
    roles::download_dataset(options, stop);
    return roles::kDone;
  });
}

}  // namespace disttf
