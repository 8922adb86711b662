// A simulated trainer's way to all ps: what its computing thread says and hears, in sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "math/parameter_layout.h"
#include "net/transport/interrupt.h"
#include "roles/run/run_config.h"
#include "tests/sim/checks.h"
#include "tests/sim/process.h"

namespace disttf::sim {

// A ps does not hold the state that this trainer works on.
struct StateLost {};
// The run is over.
struct RunOver {};

struct StepReply {
  std::uint64_t step = 0;
  std::uint32_t generation = 0;
  bool finished = false;
  bool same_step = true;
  bool joined = false;
  std::uint64_t share = 0;
  bool dropped = false;
};

// What the ps are set to.
struct SavedState {
  std::uint64_t step = 0;
  std::vector<Values> tensors;  // the parameters; none more: the optimizer begins anew
};

class TrainerProcess : public FiberProcess {
 public:
  TrainerProcess(World& world, Network& network, Checks& checks, const roles::RunConfig& config,
                 roles::Task task, std::size_t node, std::size_t size, OnEnd on_end);

 protected:
  struct Link {
    std::size_t index = 0;
    Channel channel;
    net::ShardState state = net::ShardState::kEmpty;
    std::uint64_t incarnation = 0;
    std::uint32_t generation = 0;
    std::uint64_t step = 0;
    bool pinned = false;
    std::uint8_t replica = 0;
    std::uint64_t next_request = 1;
    math::Range range;
  };
  // One link's part of an exchange with all.
  struct Pending {
    enum class State : std::uint8_t { kWaiting, kLost, kDone };
    State state = State::kDone;
    Frame request;
    net::FrameKind expected = net::FrameKind::kAck;
    net::FrameHeader reply;
    Time silent_at{};
    Time lost_since{};
    Time retry_at{};
    Time look_at = Time::max();  // done: whether its link still is there
  };
  enum class Heard : std::uint8_t { kNothing, kReply, kBroken };

  // --- the calls of roles/trainer: see there. Of the computing fiber.
  Routine<bool> connect(Fiber& fiber);
  Routine<bool> get_config(Fiber& fiber);
  Routine<StepReply> pull(Fiber& fiber);
  Routine<StepReply> push_pull(Fiber& fiber, std::uint64_t sequence, bool cut,
                               std::shared_ptr<const Values> gradient,
                               Checks::Components components);
  void push(std::uint64_t micro_batch, const std::shared_ptr<const Values>& gradient);
  // False: `work_` is to be pushed first.
  Routine<bool> await_step(Fiber& fiber, std::uint64_t sequence, bool cut, StepReply& reply);
  Routine<StepReply> peek(Fiber& fiber);
  Routine<bool> await_end(Fiber& fiber);
  Routine<std::optional<std::uint64_t>> fetch_final(Fiber& fiber);
  // False: the ps hold another state than the result, and training goes on from there, `reply`.
  Routine<bool> await_others(Fiber& fiber, StepReply& reply);
  Routine<void> shutdown(Fiber& fiber);

  // All ps hold this generation.
  virtual void joined(std::uint32_t generation) = 0;
  // Chief.
  virtual bool leads() const { return false; }
  virtual SavedState state_to_train() { return {}; }

  [[nodiscard]] std::uint32_t generation() const noexcept { return links_.front().generation; }
  void throw_if_stopped() const;
  [[nodiscard]] Duration backoff();
  void reset_backoff() noexcept { ceiling_ms_ = 50; }

  Checks& checks_;
  const roles::RunConfig config_;
  const std::string config_json_;
  const std::size_t size_;
  std::vector<Link> links_;
  Values parameters_;
  Values next_parameters_;       // elastic: while gradients of the others are computed
  Values* into_ = &parameters_;  // where parameters go that come
  std::vector<std::uint64_t> work_;
  bool over_ = false;
  bool replicated_ = false;
  bool told_to_stop_ = false;

 private:
  Routine<bool> open(Fiber& fiber, Link& link, Time deadline);
  Routine<bool> open_host(Fiber& fiber, Link& link, Time deadline);
  Routine<void> open_all(Fiber& fiber, std::chrono::seconds limit, std::string sentence);
  [[nodiscard]] bool send(Link& link, Frame& frame);
  // One frame that has come. Throws StateLost, Failure.
  [[nodiscard]] Heard hear(Link& link, Pending& pending);
  Routine<bool> exchange(Fiber& fiber, Link& link, net::FrameHeader header, net::FrameKind expected,
                         std::shared_ptr<const void> owner, std::span<const std::byte> body);
  Routine<bool> answers_before(Fiber& fiber, Link& link, Pending& pending, Time deadline);
  Routine<StepReply> exchange_all(Fiber& fiber);
  Routine<bool> await_all(Fiber& fiber);
  Routine<void> await_some(Fiber& fiber);
  Routine<void> retry(Fiber& fiber, std::size_t index);
  Routine<void> look_at_answered(Fiber& fiber, std::size_t index);
  Routine<StepReply> join(Fiber& fiber);
  Routine<StepReply> join_again(Fiber& fiber);
  Routine<StepReply> pull_once(Fiber& fiber, std::uint16_t flags_of_ahead);
  Routine<void> publish(Fiber& fiber);
  Routine<void> restore(Fiber& fiber, SavedState state);
  Routine<void> tell_all(Fiber& fiber, net::FrameKind kind);
  Routine<bool> tell_again(Fiber& fiber, Link& link, net::FrameKind kind, Time deadline);
  [[nodiscard]] StepReply outcome() const;
  [[nodiscard]] bool agree() const;
  void begin(std::size_t index);
  void say_goodbye();
  void lose(std::size_t index);
  void close_all();
  void note_end(const Link& link) noexcept {
    over_ = over_ || link.state == net::ShardState::kFinished;
  }
  void check_awake(Time until = Time::min());

  std::vector<Pending> pending_;
  std::uint32_t newest_generation_ = 0;
  bool awaiting_ = false;
  bool broken_ = false;
  std::uint64_t ceiling_ms_ = 50;
  std::uint64_t draws_ = 0;
  net::FreezeWatch awake_{kBeginning};
};

}  // namespace disttf::sim
