// Simulated trainers: a worker, and the chief, who publishes, restores, collects cuts and makes
// views.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "roles/chief/core/view_service.h"
#include "tests/sim/session.h"

namespace disttf::sim {

// How fast trainers are, in virtual time.
struct Pace {
  std::uint64_t compute_us = 500;  // a gradient, about
  std::uint64_t slow_one_in = 0;   // takes twenty seconds; 0: none
  std::uint64_t cut_every = 0;     // steps; 0: no cuts
  std::uint64_t load_ms = 10;      // before a process is ready to train
};

class WorkerProcess : public TrainerProcess {
 public:
  WorkerProcess(World& world, Network& network, Checks& checks, const roles::RunConfig& config,
                const Pace& pace, roles::Task task, std::size_t node, std::size_t size,
                OnEnd on_end);

  void start() override;
  void terminate() override;

 protected:
  virtual Routine<void> live(Fiber& fiber);
  Routine<void> train(Fiber& fiber);
  void print_result();
  [[nodiscard]] bool has_kept_result() const noexcept { return !kept_result_.empty(); }

  const Pace pace_;
  StepReply reply_;

  virtual void took_cut(std::uint64_t /*sequence*/) {}
  void joined(std::uint32_t generation) override;

 private:
  // A control channel to a ps.
  struct Beat {
    Channel channel;
    bool is_welcomed = false;
  };
  Routine<void> beat(Fiber& fiber, std::size_t index);
  Routine<void> compute(Fiber& fiber);
  Routine<void> take_step(Fiber& fiber);
  Routine<void> take_elastic_step(Fiber& fiber, std::uint64_t sequence, bool cut);
  [[nodiscard]] std::shared_ptr<const Values> gradient_of(
      std::uint64_t step, std::size_t slot, const Checks::Components& components) const;
  void keep_result();

  [[nodiscard]] std::size_t rank() const { return task_.cluster.rank_of(task_.self); }

  std::vector<std::unique_ptr<Beat>> beats_;
  std::vector<Fiber*> beating_;
  Fiber* living_ = nullptr;
  std::uint32_t generation_ = 0;
  std::uint64_t local_step_ = 0;
  std::uint64_t computed_ = 0;
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
  bool leads() const override { return true; }
  SavedState state_to_train() override;
  void took_cut(std::uint64_t sequence) override;

 private:
  // A host of a range, and the channel over which it is told views.
  struct Host {
    std::size_t range = 0;
    std::uint8_t replica = 0;
    Channel channel;
    bool is_welcomed = false;
    bool finished = false;
  };
  struct CutJob {
    std::uint64_t sequence = 0;
    std::uint32_t generation = 0;
    bool now = false;
  };
  Routine<void> oversee(Fiber& fiber, std::size_t index);
  Routine<void> beat_on_views(Fiber& fiber);
  void tell(std::size_t range);
  void send_view(const Host& host, const net::View& view);
  [[nodiscard]] bool has_ended(const net::TaskId& ps) const;
  Routine<void> collect_cuts(Fiber& fiber);
  Routine<bool> collect(Fiber& fiber, CutJob job);
  Routine<bool> settle(Fiber& fiber);

  Disk* const disk_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<roles::ViewService> keepers_;
  std::vector<std::optional<net::View>> told_;
  bool finishing_ = false;
  std::vector<std::unique_ptr<Channel>> cut_channels_;
  std::optional<CutJob> job_;
  bool saved_ = false;
  Fiber* collector_ = nullptr;
  std::optional<SavedState> newest_;
};

}  // namespace disttf::sim
