// The shell of a simulated trainer's computing thread. It drives RunSession as
// roles/trainer/shell/ps_client.cc does, with simulated connections in place of sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/waiting/interrupt.h"
#include "roles/trainer/core/group_way.h"
#include "roles/trainer/core/run_session.h"
#include "run/run_config.h"
#include "tests/sim/checks.h"
#include "tests/sim/host_group.h"
#include "tests/sim/process.h"

namespace disttf::sim {

// Thrown if the run is over and this trainer came too late to take part in its end.
struct RunOver {};

// The state that the ps are restored to.
struct SavedState {
  std::uint64_t step = 0;
  std::vector<Values> tensors;  // the parameters only: the optimizer's state starts from zero
  roles::EarlyStopState early_stop_state = {};
};

class TrainerProcess : public FiberProcess {
 public:
  TrainerProcess(World& world, Network& network, Checks& checks, const roles::RunConfig& config,
                 roles::Task task, std::size_t node, std::size_t size, OnEnd on_end);

  [[nodiscard]] std::uint64_t incarnation() const noexcept override { return incarnation_; }

  // The trainer shares its host with others, and may push one sum with them to the ps that have a
  // bit in `ranges`. REQUIRES: it has not started.
  void set_host(SimulatedHost& host, std::uint64_t ranges) noexcept {
    host_ = &host;
    summed_ranges_ = ranges;
  }

 protected:
  // Drives the operation that was begun until it has ended. Throws Failure, RunOver.
  Routine<void> run(Fiber& fiber);
  // As run(), for an operation that returns parameters, into `into`.
  Routine<roles::StepResult> run_step(Fiber& fiber, Values& into);
  // Applies the session's effects.
  Routine<void> perform(Fiber& fiber);
  // Returns the time. The time since the last operation was the trainer's own.
  [[nodiscard]] Time begin_now() noexcept;

  // Leaves the host group, since the trainer is about to do something other than push the gradients
  // of successive steps.
  void leave_group();
  void bury() override;

  // Chief: returns the state to restore to the ps, which hold none or different ones.
  virtual Routine<SavedState> state_to_train(Fiber& /*fiber*/) { co_return SavedState{}; }

  // A ps has recorded an earlier process of this task whose clock was ahead.
  void take_incarnation_above(std::uint64_t other);
  // Opens everything but the links again, as incarnation_.
  virtual void took_incarnation() = 0;

  // Heartbeats name this generation from now on.
  virtual void set_generation(net::Generation generation) = 0;

  void throw_if_stopped() const;
  // Sizes the memory for the run, according to the configuration.
  void prepare();
  // Returns the state of that range that this trainer works on.
  [[nodiscard]] StateName state_of(std::size_t range) const;
  [[nodiscard]] std::span<const std::byte> part_of(const Values& values, std::size_t range) const;
  // Reads the parameters of the last operation again if the ps still hold them in memory. Returns
  // false if the ps have changed them.
  [[nodiscard]] bool read_again(Values& parameters) const;

  Checks& checks_;
  const roles::RunConfig config_;
  const std::size_t size_;
  roles::RunSession session_;
  Values parameters_;
  std::shared_ptr<const Values> gradient_;  // what is pushed
  bool is_shared_ = false;                  // it lies in memory that the ps read
  bool is_torn_ = false;  // it was computed from parameters that were overwritten meanwhile
  // A torn gradient has gone into the parameters of the last operation. They are checked where they
  // could affect the run: at a ps that was not replaced, in a checkpoint, a score, or a result.
  bool is_misled_ = false;
  bool comes_misled_ = false;  // the same of the operation under way
  // Of the operation that was begun: parameters may stay in the ps's memory.
  bool may_stay_ = false;
  bool was_opened_again_ = false;       // a link was opened again since that memory was made
  net::FreezeWatch awake_{kBeginning};  // while an operation is under way
  bool way_is_by_leader_ = false;       // a push without a body awaits its answer
  bool stop_requested_ = false;
  bool was_replaced_ = false;  // it stops since it was replaced
  std::uint64_t incarnation_;  // the one that the ps have recorded
  std::uint64_t reported_incarnation_ =
      0;  // the chief that a host of a range has reported; 0: none
  // Ps at whose address heartbeats of that generation reached a process without a state of it.
  std::vector<std::pair<std::size_t, net::Generation>> replaced_;

 private:
  struct Link {
    Channel channel;
    std::uint64_t incarnation = 0;  // of the ps that has welcomed this trainer last
    bool was_open = false;
  };
  Routine<void> await_some(Fiber& fiber);
  Routine<void> dial(Fiber& fiber, roles::Dial order);
  // As roles/trainer/shell/host_sum.h does.
  Routine<void> choose_way(Fiber& fiber, net::FrameHeader push);
  Routine<std::uint64_t> gather(Fiber& fiber, HostGroup::Name name);
  Routine<std::uint64_t> offer(Fiber& fiber, HostGroup::Name name);
  Routine<void> receive_at_leader(Fiber& fiber, std::size_t index);
  [[nodiscard]] bool has_lost_leader() const noexcept;
  void push_without_leader();
  void apply(const roles::TrainerOutbox::Effect& effect);
  void send(const roles::SendRequest& order);
  void receive(std::size_t index);
  void look_at_incarnations(Time at);
  void check_awake(Time until = Time::min());

  const std::string config_json_;
  SimulatedHost* host_ = nullptr;
  std::shared_ptr<HostGroup> group_;  // that it leads or has joined
  Time heard_{};                      // when the leader last sent something
  std::uint64_t summed_ranges_ = 0;
  roles::GroupWay way_;
  HostGroup::Name pushed_;
  std::shared_ptr<const Values> sum_;  // the leader's sum
  std::vector<Link> links_;
  Values* into_ = &parameters_;  // the destination of the parameters
  // By range: the memory with the parameters, of the operation under way and of the last one.
  std::vector<Frame> coming_;
  std::vector<Frame> stay_;
  std::optional<SavedState> state_;  // the state that is being restored to the ps
  bool has_joined_ = false;
  std::uint64_t incarnations_ = 0;  // how many it has taken
  Time round_at_{};
  std::uint64_t rounds_ = 0;  // waits at that time
};

}  // namespace disttf::sim
