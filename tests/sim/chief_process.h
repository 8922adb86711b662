// The simulated chief: a worker that starts the run, saves snapshots, makes views, and ends the
// run. It has the real cores, and does what roles/chief/shell does in virtual time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "roles/chief/core/early_stop.h"
#include "roles/chief/core/failover_controller.h"
#include "roles/chief/core/run_leader.h"
#include "roles/chief/core/snapshot_coordinator.h"
#include "run/output_options.h"
#include "tests/sim/disk.h"
#include "tests/sim/trainers.h"

namespace disttf::sim {

class ChiefProcess final : public WorkerProcess {
 public:
  // `disk`: nullptr if there is no --train_dir.
  ChiefProcess(World& world, Network& network, Checks& checks, const roles::RunConfig& config,
               const Pace& pace, const roles::CheckpointOptions& checkpoint, SimulatedDisk* disk,
               roles::Task task, std::size_t node, std::size_t size, OnEnd on_end);

  void start() override;

 protected:
  Routine<void> live(Fiber& fiber) override;
  Routine<SavedState> state_to_train(Fiber& fiber) override;
  void took_incarnation() override;
  bool wants_snapshot(std::uint64_t step) override;
  void took_snapshot(std::uint64_t sequence) override;
  Routine<bool> ends_here(Fiber& fiber) override;

 private:
  // The channel that carries views to a host of a range.
  struct Host {
    Channel channel;
    bool is_dialed = false;  // an attempt is due
    bool is_welcomed = false;
  };
  using Written = std::variant<roles::ShardFile, roles::ShardNotWritten>;
  // As in roles/chief/shell/failover_thread.cc.
  Routine<void> keep_views_time(Fiber& fiber);
  Routine<void> serve(Fiber& fiber, roles::HostNumber number);
  Routine<void> listen(Fiber& fiber, roles::HostNumber number);
  void begin_views();
  void read_refusal(roles::HostNumber number, const Frame& frame);
  void act_on_views();

  // As in roles/chief/shell/checkpointer.cc.
  void start_snapshots();
  void start_snapshot(const roles::SnapshotRequest& request);
  Routine<void> await_idle(Fiber& fiber, Time deadline);
  Routine<void> save_now(Fiber& fiber, net::Generation generation, Time deadline);
  Routine<bool> save_final(Fiber& fiber, Time deadline);
  Routine<std::optional<SavedState>> saved_state(Fiber& fiber);
  Routine<void> keep_snapshots(Fiber& fiber);
  Routine<roles::SnapshotAction> carry_out(Fiber& fiber, roles::SnapshotRequest request,
                                           roles::SnapshotAction action);
  [[nodiscard]] roles::SnapshotAction store(roles::SnapshotAction action);
  [[nodiscard]] Duration disk_time();
  // As in roles/chief/shell/snapshot_link.cc.
  void close_snapshot_channels();
  Routine<std::optional<Frame>> await_frame(Fiber& fiber, Channel& channel, Time deadline);
  Routine<roles::HostContact> connect_to(Fiber& fiber, roles::ConnectToHost action, Time deadline);
  Routine<std::optional<std::uint64_t>> find(Fiber& fiber, roles::FindSnapshot action,
                                             roles::SnapshotRequest request);
  void take_values(std::size_t ps, std::span<const std::byte> body);
  [[nodiscard]] std::optional<std::string> request_shard_write(
      const roles::RequestShardWrite& action, const roles::SnapshotRequest& request);
  Routine<Written> await_written(Fiber& fiber, roles::AwaitWritten action);

  // As in roles/chief/shell/chief.cc.
  Routine<void> take_action(Fiber& fiber);
  Routine<bool> await_others(Fiber& fiber);
  Routine<bool> peek(Fiber& fiber);
  void roll_back();
  void keep_all_known(bool has_result);
  Routine<void> shut_down(Fiber& fiber);

  const roles::CheckpointOptions checkpoint_;
  SimulatedDisk* const disk_;
  std::optional<roles::CheckpointStore> checkpoints_;  // on the disk, if there is one
  roles::RunLeader leader_;
  roles::EarlyStop early_stop_;
  roles::EarlyStopState early_stop_state_;  // as checkpoints store it
  roles::Task task_of_views_;               // with this chief's incarnation
  std::optional<roles::FailoverController> views_;
  std::uint64_t views_begun_ = 0;             // the number of times that views were begun
  bool is_settled_ = false;                   // any process that replaces this chief started later
  std::vector<std::unique_ptr<Host>> hosts_;  // by number
  std::vector<Fiber*> serving_;               // by number
  Fiber* views_time_ = nullptr;

  std::optional<roles::SnapshotSchedule> schedule_;
  std::optional<roles::SnapshotCoordinator> coordinator_;
  std::vector<std::string> tensor_names_;                    // of the optimizer's state
  std::vector<std::unique_ptr<Channel>> snapshot_channels_;  // by ps
  std::optional<roles::SnapshotRequest> snapshot_;           // under way or about to be
  roles::TrainingState collected_;                           // collected so far
  std::shared_ptr<const roles::TrainingState> newest_;
  bool last_done_ = false;  // nothing more can be tried
  Fiber* saver_ = nullptr;
  Fiber* idle_waiter_ = nullptr;  // waits until no snapshot is under way
  std::uint64_t disk_uses_ = 0;
};

}  // namespace disttf::sim
