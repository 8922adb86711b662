// One request to each of some ranges, until all have answered.
//
// All requests are sent before the first reply is awaited, and the loss of any ps is noticed while
// others are waited for. A ps that waits itself sends heartbeats; without them it counts as lost
// after the heartbeat timeout. A lost link is opened again and the request repeated, until
// Timeouts::peer has passed since the loss; requests are idempotent. That time runs on while the
// link is opened and lost again without any frame in between. If the link broke, a heartbeat ends
// it; if the ps sent an invalid frame, only the answer does.
//
// Ps that have answered are monitored meanwhile: the others may be waiting for a trainer that can
// come only once such a ps, if it has died or is suspended, has been restored. They are sent
// heartbeats, which they return. Those that are lost are connected to again as well, to learn which
// state they hold then.
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
  kParameters,  // floats of the range; then body(), or lost() if they are incomplete
  kText,        // at most net::kMaxConfigBodyBytes, then body()
  kRefusal,     // net::Refusal, then refused()
};

// The result of a pull or a push.
struct StepResult {
  std::uint64_t step = 0;          // global step of the parameters received (ps 0's)
  net::Generation generation = 0;  // of the run's state
  bool finished = false;  // all ps report the end of training; not fully synchronous: ps 0 does
  bool same_step = true;  // all ps answered with the same step
  bool same_generation = true;    // and of the same generation
  bool joined = false;            // the parameters are of another state: the gradient was lost
  net::StepShare share = {};      // elastic: this trainer's share of the step, as ps 0 scheduled it
  std::uint64_t counts_from = 0;  // not elastic: the number above which the next push is numbered
  // Ps that did not use the gradient because it came too late (backup workers).
  std::size_t dropped = 0;
};

// What the loss of a ps means to an exchange.
enum class OnLoss : std::uint8_t {
  kRepeat,     // connect again, and repeat the request
  kJoinAgain,  // log it; the state is lost (elastic: any part of the exchange may be missing)
  kStateLost,  // the state is lost
  kLeave,      // go on without it
};

class StepExchange {
 public:
  StepExchange(RunContext& context, Dialer& dialer);

  // Drops the previous exchange. `takes_work`: elastic, a ps may request micro-batches.
  void begin(OnLoss on_loss, bool takes_work = false);
  // Sends a range its request. `expected`: the kind of its answer.
  void ask(std::size_t range, const net::FrameHeader& request, RequestBody body,
           net::FrameKind expected, Clock::time_point now);
  // Sends all ranges the best evaluation on record. REQUIRES: there is one.
  void ask_for_best(Clock::time_point now);
  // From now on the exchange goes on without lost ps, including those that are lost already.
  void leave_lost();
  // Closes the links of ps that have not answered: an answer may be on its way.
  void close_unfinished();

  // --- events: see RunSession

  [[nodiscard]] ReplyPlan header(std::size_t range, const net::FrameHeader& header,
                                 Clock::time_point now);
  void body(std::size_t range, Clock::time_point now);
  void sent(std::size_t range, Clock::time_point now);
  void lost(std::size_t range, std::error_code error, Clock::time_point now);
  // The dial of a range's link has ended with this result.
  void dialed(std::size_t range, Dialer::Result result, Clock::time_point now);
  // Goes on without this ps.
  void leave(std::size_t range);
  // Goes on without each ps that has not begun to answer.
  void leave_timed_out();
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
  // Returns whether it has been asked, and has neither answered nor been left.
  [[nodiscard]] bool awaits(std::size_t range) const noexcept;
  [[nodiscard]] bool is_any_answered() const noexcept;
  // Of the answers to a pull or a push.
  [[nodiscard]] bool is_any_finished() const noexcept;
  [[nodiscard]] bool awaits_any() const noexcept;
  // Returns whether a ps does not hold the state that this trainer works on: the run is to be
  // joined again.
  [[nodiscard]] bool is_state_lost() const noexcept { return state_lost_; }
  [[nodiscard]] bool leaves() const noexcept { return on_loss_ == OnLoss::kLeave; }
  [[nodiscard]] const std::vector<std::uint64_t>& work() const noexcept { return work_; }
  // The work was done, and the exchange goes on.
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
    kDone,  // answered, and the link is open as far as is known
    kLeft,  // the exchange goes on without it
  };
  struct Item {
    State state = State::kUnasked;
    net::FrameHeader request;
    RequestBody body = RequestBody::kNone;
    net::FrameKind expected = net::FrameKind::kAck;
    bool is_answered = false;  // also if the link was lost since
    // The body being read is another configuration than this trainer's.
    bool is_configuration = false;
    std::uint64_t awaited_id = 0;  // of the newest request
    net::Parameters reply;
    // While waiting or done: the time at which the heartbeat timeout expires.
    Clock::time_point times_out_at;
    Clock::time_point beat_at;  // done: the time of the next heartbeat to the ps
    Clock::time_point lost_since;
    // Nothing has arrived from the ps since lost_since, though a link may have been open meanwhile.
    bool is_failing = false;
    bool is_nonsense = false;  // the ps sent an invalid frame, and has not answered since
    WaitNotes notes;
    Clock::time_point retry_at;
    std::error_code error;  // of the last loss
  };

  [[nodiscard]] static bool is_other_configuration(const Item& item,
                                                   const net::FrameHeader& header);
  void send(std::size_t range, Clock::time_point now);
  void close_and_lose(std::size_t range, std::error_code error, Clock::time_point now);
  void fenced(std::size_t range);
  void answered(std::size_t range, Clock::time_point now);
  void is_back(std::size_t range, Clock::time_point now);
  void done(Item& item, Clock::time_point now) noexcept;
  // Returns whether it has answered, and its loss matters.
  [[nodiscard]] bool is_watched(std::size_t range) const noexcept {
    return items_[range].state == State::kDone &&
           (on_loss_ == OnLoss::kRepeat || on_loss_ == OnLoss::kJoinAgain);
  }
  void beat(std::size_t range, Clock::time_point now);
  [[nodiscard]] Clock::time_point given_up_at(const Item& item) const;
  void retry_one(Clock::time_point now);

  RunContext& context_;
  Dialer& dialer_;
  std::vector<Item> items_;  // by range; reused, so that a step allocates nothing
  std::vector<std::uint64_t> work_;
  OnLoss on_loss_ = OnLoss::kRepeat;
  bool takes_work_ = false;
  bool state_lost_ = false;
};

}  // namespace disttf::roles
