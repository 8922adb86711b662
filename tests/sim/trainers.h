// Simulated trainers, a worker and the chief: the real cores, and shells that do what the real ones
// do, in virtual time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "roles/chief/core/failover_controller.h"
#include "roles/trainer/core/stepper.h"
#include "tests/sim/session.h"

namespace disttf::sim {

// How fast trainers are, in virtual time.
struct Pace {
  std::uint64_t compute_us = 500;  // a gradient, about
  std::uint64_t slow_one_in = 0;   // takes twenty seconds; 0: none
  std::uint64_t cut_every = 0;     // steps; 0: no cuts
  std::uint64_t load_ms = 10;      // before a process is ready to train
};

// roles/trainer/shell/worker.cc, trainer.cc and background.cc, with simulated gradients.
class WorkerProcess : public TrainerProcess {
 public:
  WorkerProcess(World& world, Network& network, Checks& checks, const roles::RunConfig& config,
                const Pace& pace, roles::Task task, std::size_t node, std::size_t size,
                OnEnd on_end);

  void start() override;
  void terminate() override;

 protected:
  virtual Routine<void> live(Fiber& fiber);
  // True: the run is over.
  Routine<bool> connect(Fiber& fiber);
  Routine<void> train(Fiber& fiber);
  void print_result(bool is_chief);

  // Whether a copy of the state of that step is to be kept; then, it is.
  [[nodiscard]] virtual bool wants_cut(std::uint64_t /*step*/) const { return false; }
  virtual void took_cut(std::uint64_t /*sequence*/) {}
  void set_generation(std::uint32_t generation) override;

  const Pace pace_;
  const std::size_t rank_;
  roles::Stepper stepper_;
  roles::StepResult reply_;

 private:
  // A control channel to a ps.
  struct Beat {
    Channel channel;
    bool is_welcomed = false;
  };
  Routine<void> beat(Fiber& fiber, std::size_t index);
  Routine<void> compute(Fiber& fiber, Checks::Components components);
  Routine<void> take_step(Fiber& fiber);
  Routine<void> push_pull(Fiber& fiber, bool cut);
  Routine<void> take_elastic_step(Fiber& fiber, bool cut);
  Routine<bool> leave(Fiber& fiber);
  Routine<bool> has_result(Fiber& fiber);

  std::vector<std::unique_ptr<Beat>> beats_;
  std::vector<Fiber*> beating_;
  Fiber* living_ = nullptr;
  std::uint32_t generation_ = 0;
  std::uint64_t computed_ = 0;
  Values next_parameters_;  // elastic: while gradients of the others are computed
  Values kept_result_;
};

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
