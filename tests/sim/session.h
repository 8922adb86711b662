// The shell of a simulated trainer's computing thread: drives RunSession as
// roles/trainer/shell/ps_client.cc does, with simulated connections in the place of sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/transport/interrupt.h"
#include "roles/run/run_config.h"
#include "roles/trainer/core/group_way.h"
#include "roles/trainer/core/run_session.h"
#include "tests/sim/checks.h"
#include "tests/sim/host_group.h"
#include "tests/sim/process.h"

namespace disttf::sim {

// The run is over, and this trainer has come too late to have a part in its end.
struct RunOver {};

// What the ps are set to.
struct SavedState {
  std::uint64_t step = 0;
  std::vector<Values> tensors;  // the parameters; none more: the optimizer begins anew
  roles::EarlyEnd early_end = {};
};

class TrainerProcess : public FiberProcess {
 public:
  TrainerProcess(World& world, Network& network, Checks& checks, const roles::RunConfig& config,
                 roles::Task task, std::size_t node, std::size_t size, OnEnd on_end);

  [[nodiscard]] std::uint64_t incarnation() const noexcept override { return incarnation_; }

  // There are other trainers on its host, who may push one sum: to the ps that have a bit in
  // `ranges`. Before it starts.
  void set_host(SimulatedHost& host, std::uint64_t ranges) noexcept {
    host_ = &host;
    summed_ranges_ = ranges;
  }

 protected:
  // Drives the operation that was begun until it has ended. Throws Failure, RunOver.
  Routine<void> run(Fiber& fiber);
  // The same of one that brings parameters, to `into`.
  Routine<roles::StepResult> run_step(Fiber& fiber, Values& into);
  // Does what the session wants done.
  Routine<void> perform(Fiber& fiber);
  // It is now; the time since the last operation was the trainer's own.
  [[nodiscard]] Time begin_now() noexcept;

  // Something else is done than to push gradients of one state after the other: the others of the
  // host do not count on it.
  void leave_group();
  void bury() override;

  // Chief: what the ps are to be set to, as they hold no state, or not the same.
  virtual Routine<SavedState> state_to_train(Fiber& /*fiber*/) { co_return SavedState{}; }

  // A process before this one is known to a ps, by a clock that was ahead.
  void take_incarnation_above(std::uint64_t other);
  // All that is open besides links is opened anew, in incarnation_.
  virtual void took_incarnation() = 0;

  // From now on heartbeats name it.
  virtual void set_generation(net::Generation generation) = 0;

  void throw_if_stopped() const;
  // The run's size, as it is known from the configuration.
  void prepare();
  // Of the state of each range that this trainer works on.
  [[nodiscard]] StateName state_of(std::size_t range) const;
  [[nodiscard]] std::span<const std::byte> part_of(const Values& values, std::size_t range) const;
  // What the ps have now where they have left the parameters that the last operation brought.
  // False: something else.
  [[nodiscard]] bool read_again(Values& parameters) const;

  Checks& checks_;
  const roles::RunConfig config_;
  const std::size_t size_;
  roles::RunSession session_;
  Values parameters_;
  std::shared_ptr<const Values> gradient_;  // what is pushed
  bool is_shared_ = false;                  // it lies in memory that ps read
  bool is_torn_ = false;                    // it is of parameters that were overwritten meanwhile
  // Such a gradient has gone into the parameters of the last operation. What comes of them is
  // judged where it could reach whoever has a part in the run: a ps that has not been replaced, a
  // checkpoint, a score, a result.
  bool is_misled_ = false;
  bool comes_misled_ = false;  // the same of the operation under way
  // Of the operation that was begun: parameters stay in the ps's memory.
  bool may_stay_ = false;
  bool was_opened_again_ = false;       // a link, since that memory was made
  net::FreezeWatch awake_{kBeginning};  // while an operation is under way
  bool way_is_by_leader_ = false;       // a push that has no body waits for its answer
  bool told_to_stop_ = false;
  bool was_replaced_ = false;   // that is why
  std::uint64_t incarnation_;   // that the ps know
  std::uint64_t heard_of_ = 0;  // a host of a range knows that chief; 0: of none
  // Ps whose addresses have led the heartbeats of a generation to who holds nothing of it.
  std::vector<std::pair<std::size_t, net::Generation>> replaced_;

 private:
  struct Link {
    Channel channel;
    std::uint64_t incarnation = 0;  // of the ps that has welcomed this trainer last
    bool was_open = false;
  };
  Routine<void> await_some(Fiber& fiber);
  Routine<void> dial(Fiber& fiber, roles::Dial order);
  // What roles/trainer/shell/host_sum.h does.
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
  std::shared_ptr<HostGroup> group_;  // that it leads, or has come to
  Time heard_{};                      // of the leader
  std::uint64_t summed_ranges_ = 0;
  roles::GroupWay way_;
  HostGroup::Name pushed_;
  std::shared_ptr<const Values> sum_;  // a leader's
  std::vector<Link> links_;
  Values* into_ = &parameters_;  // where parameters go that come
  // By range: where they lie, of the operation under way and of the last one that has ended.
  std::vector<Frame> coming_;
  std::vector<Frame> stay_;
  std::optional<SavedState> state_;  // what the ps are being set to
  bool has_joined_ = false;
  std::uint64_t incarnations_ = 0;  // taken
  Time round_at_{};
  std::uint64_t rounds_ = 0;  // of waiting, at that time
};

}  // namespace disttf::sim
