// Restarts the tasks of a simulated cluster as roles/launch/shell/launcher.cc does, with the real
// core of a launch, in virtual time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "roles/launch/core/supervisor.h"
#include "run/outcome.h"
#include "tests/sim/world.h"

namespace disttf::sim {

// What a launcher does to its tasks, by node.
class LaunchedTasks {
 public:
  LaunchedTasks() = default;
  LaunchedTasks(const LaunchedTasks&) = delete;
  LaunchedTasks& operator=(const LaunchedTasks&) = delete;
  virtual ~LaunchedTasks() = default;
  virtual void start_task(std::size_t node) = 0;
  // The signal arrives some time later.
  virtual void signal_task(std::size_t node, int signal) = 0;
};

class SimulatedLauncher final : public Actor {
 public:
  struct Options {
    std::size_t ps = 1;
    std::size_t trainers = 1;
    roles::RestartOptions restarts;
    bool saves = false;  // there is a --train_dir
  };
  SimulatedLauncher(World& world, LaunchedTasks& tasks, const Options& options);

  // --- events
  void started(std::size_t node);
  void ended(std::size_t node, const roles::Ending& ending);

  // --- a user's requests; each is ignored where it is not allowed
  void restart(std::size_t node);
  void replace(std::size_t node);
  void restart_all();

  // A task may end with a code that ends the run.
  void expect_failure() noexcept { may_fail_ = true; }

  // Returns whether nothing is restarted any more, since the run has its result or has failed.
  [[nodiscard]] bool has_decided() const { return !supervisor_.may_start(); }
  // Returns whether, in addition, all tasks have ended.
  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
  [[nodiscard]] bool has_failed() const {
    return supervisor_.policy().exit_code().value_or(roles::kDone) != roles::kDone;
  }

  void on_event(std::uint32_t what, std::uint64_t a, std::uint64_t b) override;

 private:
  void act();
  void check();
  [[nodiscard]] bool may_be_asked(std::size_t node) const;
  [[nodiscard]] roles::Supervisor::TimePoint now() const noexcept { return world_.now(); }

  World& world_;
  LaunchedTasks& tasks_;
  const Options options_;
  roles::Supervisor supervisor_;
  Time armed_{};                // the time of the next scheduled event
  std::uint64_t failures_ = 0;  // failures that called for a restart
  bool all_end_ = false;        // for restart_all()
  bool may_fail_ = false;
  bool has_ended_ = false;
};

}  // namespace disttf::sim
