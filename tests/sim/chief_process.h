// The simulated chief: a worker that starts the run, keeps snapshots, makes views, and ends it;
// with the real cores, and a shell that does what roles/chief/shell does, in virtual time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "roles/chief/core/failover_controller.h"
#include "tests/sim/trainers.h"

namespace disttf::sim {

// What survives a chief: the disk with the newest checkpoint.
struct Disk {
  std::optional<SavedState> newest;
};

class ChiefProcess final : public WorkerProcess {
 public:
  // `disk`: nullptr, there is no --train_dir.
  ChiefProcess(World& world, Network& network, Checks& checks, const roles::RunConfig& config,
               const Pace& pace, Disk* disk, roles::Task task, std::size_t node, std::size_t size,
               OnEnd on_end);

  void start() override;

 protected:
  Routine<void> live(Fiber& fiber) override;
  SavedState state_to_train() override;
  bool wants_cut(std::uint64_t step) const override;
  void took_cut(std::uint64_t sequence) override;

 private:
  // The channel over which a host of a range is told views.
  struct Host {
    Channel channel;
    bool is_dialed = false;  // an attempt is to be made
    bool is_welcomed = false;
  };
  struct CutJob {
    std::uint64_t sequence = 0;
    std::uint32_t generation = 0;
    bool now = false;
  };
  // As roles/chief/shell/failover_thread.cc does it.
  Routine<void> keep_views_time(Fiber& fiber);
  Routine<void> serve(Fiber& fiber, roles::HostNumber number);
  Routine<void> listen(Fiber& fiber, roles::HostNumber number);
  void act_on_views();

  Routine<void> collect_cuts(Fiber& fiber);
  Routine<bool> collect(Fiber& fiber, CutJob job);
  Routine<bool> settle(Fiber& fiber);
  Routine<bool> await_others(Fiber& fiber);
  Routine<void> shut_down(Fiber& fiber);

  Disk* const disk_;
  std::optional<roles::FailoverController> views_;
  std::vector<std::unique_ptr<Host>> hosts_;  // by number
  std::vector<Fiber*> serving_;               // by number
  Fiber* views_time_ = nullptr;
  std::vector<std::unique_ptr<Channel>> cut_channels_;
  std::optional<CutJob> job_;
  bool saved_ = false;
  Fiber* collector_ = nullptr;
  std::optional<SavedState> newest_;
};

}  // namespace disttf::sim
