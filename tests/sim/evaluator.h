// A simulated evaluator of a run whose --train_dir it does not read. It has the real plan of its
// snapshot shards, and does what run/watch/snapshot_collector.cc does in virtual time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "run/run_config.h"
#include "run/watch/snapshot_plan.h"
#include "tests/sim/checks.h"
#include "tests/sim/process.h"

namespace disttf::sim {

// An evaluator of either kind: what the cluster asks it when it has ended.
class ScoringProcess : public FiberProcess {
 public:
  using FiberProcess::FiberProcess;
  [[nodiscard]] bool has_result() const noexcept { return has_result_; }
  // Returns whether it had found the run a second earlier, by the world's clock.
  [[nodiscard]] bool was_there_before(Time end) const noexcept {
    return known_since_ < end - std::chrono::seconds(1);
  }

 protected:
  // When all ps have recorded it, or it began to read the directory.
  Time known_since_ = Time::max();
  bool has_result_ = false;
};

class EvaluatorProcess final : public ScoringProcess {
 public:
  // `every`: the time between two snapshots that it requests.
  EvaluatorProcess(World& world, Network& network, Checks& checks, const roles::RunConfig& config,
                   Duration every, roles::Task task, std::size_t node, std::size_t size,
                   OnEnd on_end);

  void start() override;
  void terminate() override;
  [[nodiscard]] bool listens() const noexcept override { return false; }

 private:
  struct Link {
    Channel channel;
    std::uint64_t requests = 0;
    Time heard{};
    bool has_last = false;
  };

  Routine<void> live(Fiber& fiber);
  Routine<bool> reach_all(Fiber& fiber);
  Routine<bool> reach(Fiber& fiber, std::size_t index);
  Routine<void> listen(Fiber& fiber);
  void watch_all(std::uint64_t step);
  void watch(Link& link, std::uint64_t step);
  // Returns false if the ps was lost or has nothing to send. Then it starts again, or is done.
  bool receive(std::size_t index);
  bool take_part(std::size_t index, const Frame& frame);
  // Returns false if nothing more will arrive.
  bool judge();
  void lose();

  Checks& checks_;
  const std::size_t ranges_;
  const bool has_replicas_;
  const Duration every_;
  roles::SnapshotPlan plan_;
  std::vector<std::unique_ptr<Link>> links_;
  Values parameters_;
  std::vector<net::Generation> generations_;  // of the parts, by range
  bool waits_for_end_ = true;                 // it requests no snapshot now
  Time next_{};
  Time gone_since_{};
  bool is_over_ = false;
};

}  // namespace disttf::sim
