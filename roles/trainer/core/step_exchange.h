// One request to each of some ranges, and what becomes of it until all have answered.
//
// All requests leave before the first reply is awaited, and the loss of any ps is noticed while
// others are waited for. A ps that waits for somebody else says so with heartbeats: silence is
// death. A link that was lost is opened again and the request repeated, until Timeouts::peer has
// passed since; requests are made so that a repeat does no harm. That time goes on while a link is
// opened and lost again and nothing comes in between: a heartbeat ends it where the link broke, the
// answer alone where the ps said what no ps says.
//
// Ps that have answered are watched meanwhile: the others may be waiting for a trainer that can
// come only once such a ps, should it have died or be frozen, is set to a state again. They are
// sent heartbeats, which they return; those that are lost are reached again too, to see what they
// hold then.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <vector>

#include "net/wire/frame.h"
#include "net/wire/messages.h"
#include "roles/trainer/core/dialer.h"
#include "roles/trainer/core/run_context.h"
#include "roles/trainer/core/wait_notes.h"

namespace disttf::roles {

// What follows a frame's header.
enum class ReplyPlan : std::uint8_t {
  kNothing,     // the next frame's header
  kParameters,  // of the range, as many as it has floats; then body(), or lost() if they are not
  kText,        // at most net::kMaxControlBodyBytes, then body()
  kRefusal,     // net::Refusal, then refused()
};

// Where a pull or a push has brought the trainer.
struct StepResult {
  std::uint64_t step = 0;          // global step of the parameters received (ps 0's)
  net::Generation generation = 0;  // of the run's state
  bool finished = false;           // training is over, say all ps; not strict: ps 0
  bool same_step = true;           // all ps answered with parameters of the same step
  bool same_generation = true;     // and of the same generation
  bool joined = false;             // the parameters are another state's: a gradient went nowhere
  net::StepShare share = {};       // elastic: what to compute of the step, as ps 0 dealt it
  std::uint64_t counts_from = 0;   // not elastic: what the next push is to be numbered above
  std::size_t dropped = 0;  // ps that did not use the gradient: it came late (backup workers)
};

// What the loss of a ps means to an exchange.
enum class OnLoss : std::uint8_t {
  kRepeat,     // it is reached again, and asked again
  kJoinAgain,  // it is logged, and the state is lost: elastic, where any part of it may be missing
  kStateLost,  // the state is lost
  kLeave,      // it is done without
};

class StepExchange {
 public:
  StepExchange(RunContext& context, Dialer& dialer);

  // Forgets the exchange before. `takes_work`: elastic, a ps may ask for micro-batches.
  void begin(OnLoss on_loss, bool takes_work = false);
  // Sends a range its request. `expected`: what it is answered with.
  void ask(std::size_t range, const net::FrameHeader& request, RequestBody body,
           net::FrameKind expected, Clock::time_point now);
  // The same of all ranges: the best evaluation that is known here. REQUIRES: there is one to tell.
  void ask_for_best(Clock::time_point now);
  // From now on who is lost is done without, and so is who is lost now.
  void leave_lost();
  // Who has not answered is closed: an answer may be on its way.
  void close_unfinished();

  // --- what happens: as RunSession has it

  [[nodiscard]] ReplyPlan header(std::size_t range, const net::FrameHeader& header,
                                 Clock::time_point now);
  void body(std::size_t range, Clock::time_point now);
  void sent(std::size_t range, Clock::time_point now);
  void lost(std::size_t range, std::error_code error, Clock::time_point now);
  // The dial of a range's link has ended so.
  void dialed(std::size_t range, Dialer::Result result, Clock::time_point now);
  // It is done without.
  void leave(std::size_t range);
  // So is each that has not begun to answer.
  void leave_silent();
  void time(Clock::time_point now);
  void forgive(Clock::duration missed) noexcept;

  // --- queries

  [[nodiscard]] Clock::time_point deadline() const noexcept;
  [[nodiscard]] bool reads(std::size_t range) const noexcept {
    return items_[range].state == State::kWaiting || is_watched(range);
  }
  [[nodiscard]] bool reads_any() const noexcept;
  [[nodiscard]] bool is_answered(std::size_t range) const noexcept {
    return items_[range].is_answered;
  }
  // Asked, and neither answered nor done without.
  [[nodiscard]] bool awaits(std::size_t range) const noexcept;
  [[nodiscard]] bool is_any_answered() const noexcept;
  // Of the answers to a pull or a push.
  [[nodiscard]] bool is_any_finished() const noexcept;
  [[nodiscard]] bool awaits_any() const noexcept;
  // A ps does not hold what this trainer works on: the run is to be joined again.
  [[nodiscard]] bool is_state_lost() const noexcept { return state_lost_; }
  [[nodiscard]] bool leaves() const noexcept { return on_loss_ == OnLoss::kLeave; }
  [[nodiscard]] const std::vector<std::uint64_t>& work() const noexcept { return work_; }
  // It was done, and the exchange goes on.
  void forget_work() noexcept { work_.clear(); }
  // REQUIRES: all ranges have answered.
  [[nodiscard]] StepResult result() const;
  [[nodiscard]] const net::Parameters& reply(std::size_t range) const noexcept {
    return items_[range].reply;
  }
  [[nodiscard]] bool was_dropped(std::size_t range) const noexcept {
    return items_[range].reply.dropped;
  }

 private:
  enum class State : std::uint8_t {
    kUnasked,
    kWaiting,
    kReading,  // a body
    kLost,
    kDialing,
    kDone,  // answered, and the link stands as far as is known
    kLeft,  // done without
  };
  struct Item {
    State state = State::kUnasked;
    net::FrameHeader request;
    RequestBody body = RequestBody::kNone;
    net::FrameKind expected = net::FrameKind::kAck;
    bool is_answered = false;       // also where the link was lost since
    bool is_configuration = false;  // what is being read: another one than this trainer's
    std::uint64_t awaited_id = 0;   // of the request that was sent last
    net::Parameters reply;
    // Waiting, or done: the ps is dead when nothing has come until then.
    Clock::time_point silent_at;
    Clock::time_point beat_at;  // done: when the ps is sent a heartbeat
    Clock::time_point lost_since;
    // Of lost_since: the ps has said nothing since, though a link may have been open meanwhile.
    bool is_failing = false;
    bool is_nonsense = false;  // the ps said what no ps says, and has not answered since
    WaitNotes notes;
    Clock::time_point retry_at;
    std::error_code error;  // it was lost by
  };

  [[nodiscard]] static bool is_other_configuration(const Item& item,
                                                   const net::FrameHeader& header);
  void send(std::size_t range, Clock::time_point now);
  void close_and_lose(std::size_t range, std::error_code error, Clock::time_point now);
  void fenced(std::size_t range);
  void answered(std::size_t range, Clock::time_point now);
  void is_back(std::size_t range, Clock::time_point now);
  void done(Item& item, Clock::time_point now) noexcept;
  // It has answered, and its loss matters.
  [[nodiscard]] bool is_watched(std::size_t range) const noexcept {
    return items_[range].state == State::kDone &&
           (on_loss_ == OnLoss::kRepeat || on_loss_ == OnLoss::kJoinAgain);
  }
  void beat(std::size_t range, Clock::time_point now);
  [[nodiscard]] Clock::time_point given_up_at(const Item& item) const;
  void retry_one(Clock::time_point now);

  RunContext& context_;
  Dialer& dialer_;
  std::vector<Item> items_;  // by range; kept, so that a step allocates nothing
  std::vector<std::uint64_t> work_;
  OnLoss on_loss_ = OnLoss::kRepeat;
  bool takes_work_ = false;
  bool state_lost_ = false;
};

}  // namespace disttf::roles
