// A trainer's part in a run, as it talks to the ps: what is said to which of them and when, when
// one is lost, and what is done about it. The parts of it:
//   range_session.h    one range: which state of it this trainer works on
//   dialer.h           one link is opened: which host of the range, until when
//   step_exchange.h    one request to every range, and what becomes of it
//   run_join.h         how a trainer comes to the run's state, and how it comes to it again
//   farewell.h         how it leaves
//
// A state machine. It is told what has happened, and at what time; what it wants done it puts into
// the outbox, which whoever calls it empties after each call (but for queries), in the order in
// which it lies there. No byte of a tensor passes through it: it says where the body of a frame
// goes, and is told that it has come. Randomness (how long to wait before the next attempt) is a
// function of the engine that it is constructed with.
//
// How to drive it:
//
//   session.begin_push_pull(sequence, cut, now);
//   while (session.outcome() == RunSession::Outcome::kUnderWay) {
//     empty the outbox: each SendRequest ends in sent() or lost(), each Dial in dialed();
//     wait until a link has something that session.reads(link), or for session.deadline();
//     for each frame:  plan = session.header(...); read the body into its place; session.body(...)
//     for each broken link that session.reads(): session.lost(...)
//     session.time(now);   // after what has come: who has spoken is not silent
//   }
//   session.reply()
//
// One operation at a time: begin_...() gives up one that is under way. Links outlast operations.
// A link is read from only while reads() says so; what comes meanwhile waits.
//
// Not thread-safe: the computing thread owns it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "math/parameter_layout.h"
#include "net/wire/frame.h"
#include "net/wire/handshake.h"
#include "roles/run/outcome.h"
#include "roles/run/task.h"
#include "roles/trainer/core/dialer.h"
#include "roles/trainer/core/farewell.h"
#include "roles/trainer/core/range_session.h"
#include "roles/trainer/core/run_context.h"
#include "roles/trainer/core/run_join.h"
#include "roles/trainer/core/step_exchange.h"
#include "roles/trainer/core/trainer_outbox.h"

namespace disttf::roles {

class RunSession {
 public:
  // How the operation stands. But for kUnderWay and the two that say what is needed, it has ended.
  enum class Outcome : std::uint8_t {
    kUnderWay,
    kDone,
    kRunOver,     // this trainer would have to wait for what will not come any more
    kFailed,      // failure() says why, and what the task ends with
    kNeedsState,  // chief: the ps are to be set to a state; provided() goes on
    kNeedsWork,   // elastic: work() is to be pushed; begin_await_step() goes on
    // The run has another configuration than this trainer computes with: another chief has begun it
    // anew. The last body was that configuration.
    kOtherConfiguration,
  };

  // `task` must outlive it. `random`: seeded at random, differently in each process.
  RunSession(const Task& task, std::mt19937_64 random);
  RunSession(const RunSession&) = delete;
  RunSession& operator=(const RunSession&) = delete;
  ~RunSession() = default;

  // --- what is known of the run

  // Whether it has --ps_replicas 2, as the configuration says; before that any ps may say so.
  void expect_replicas(bool has_replicas) noexcept {
    context_.replicated = has_replicas;
    context_.is_replication_known = true;
    if (!has_replicas) {
      context_.use_own_hosts();
    }
  }
  struct Run {
    std::size_t size = 0;  // floats of the parameter vector
    bool strict = true;    // every gradient counts
    bool elastic = false;
    std::uint64_t configuration = 0;  // configuration_id() of what is published; 0: not known
  };
  // TakeIncarnation has been done: this process is that one now.
  void took_incarnation(std::uint64_t incarnation) noexcept { context_.incarnation = incarnation; }
  // Instead: another session of this process has connected to all ps as `incarnation`. A ps that
  // refuses it now knows of a newer process, and that one is in the right.
  void continue_as(std::uint64_t incarnation) noexcept {
    context_.incarnation = incarnation;
    context_.has_connected = true;
  }
  // Before the operations from begin_pull() on.
  void prepare(const Run& run);
  // Chief: from now on this trainer publishes, and sets the ps to one state where they hold none.
  void lead() noexcept { join_.lead(); }

  // Chief, with --patience: it has found, or read, that this is the best evaluation; or it knows of
  // none yet.
  void know_best(const BestEvaluation& best) {
    BestEvaluation newest = this->best();
    newest.learn(best);
    context_.best = newest;
  }

  // Chief: the state that it is about to provide is the result of a run that has ended early.
  void provides_result() noexcept { join_.has_ended(0); }

  // --- operations

  // To every ps, retrying those that are not up until Timeouts::start has passed. kRunOver: a ps
  // says that it is; then some may not be connected. Until then this process may turn out to be
  // older than one before it, by the clocks, and take another incarnation; after that one that is
  // refused for another's sake has been replaced, and fails.
  void begin_connect(Clock::time_point now);
  // The reply's body is the run's configuration, from ps 0, once the chief has published it.
  void begin_get_config(Clock::time_point now);
  // Joins the run: until all ps hold one state, and its parameters are here.
  void begin_pull(Clock::time_point now);
  // Pushes the gradient of the parameters that the last reply brought. Where a ps has lost its
  // state the run is joined again, and reply().joined. `sequence`: Stepper::sequence(). `cut`: the
  // ps keep a copy of the state it leads to.
  void begin_push_pull(std::uint64_t sequence, bool cut, Clock::time_point now);
  // The header that begin_push_pull() with the same arguments will send there, if the link is not
  // lost before: whoever begins to send it earlier needs it.
  [[nodiscard]] net::FrameHeader push_header_ahead(std::size_t range, std::uint64_t sequence,
                                                   bool cut);
  // Elastic: hands the gradient of one micro-batch to every ps that has not answered with the next
  // step's parameters. Over once the outbox is empty; what becomes of it begin_await_step() tells.
  void push(std::uint64_t micro_batch);
  // Elastic: until the step has been made. After kNeedsWork: goes on, with the same arguments.
  void begin_await_step(std::uint64_t sequence, bool cut, Clock::time_point now);
  // Chief: the parameters as they are now, on every ps for itself, are the run's result: no step is
  // made any more. Where every gradient counts that ends the run before its last step. kDone:
  // reply().finished, or reply().joined where the state was lost before all ps knew.
  void begin_peek(Clock::time_point now);
  // Chief: tells every ps the best evaluation that it knows of. Where the state is lost meanwhile
  // the next operation finds out, and they are told when the run is joined again. REQUIRES:
  // know_best().
  void begin_tell_best(Clock::time_point now);

  // Worker: says goodbye, and waits until the result is durable. kDone: was_released() says
  // whether it is, or else the ps were set back and the run is to be joined again.
  void begin_await_end(Clock::time_point now);
  // Worker, when the run is over: the parameters that the ps hold then. kDone: final_step() says
  // which they are, nothing where a ps is gone.
  void begin_fetch_final(Clock::time_point now);
  // Chief: says goodbye, and waits until the other trainers have the result too. Ps that are lost
  // meanwhile are set to it again. kDone: reply().joined where another chief has set them to a
  // state from which there are steps to be made still; the run is to be joined again.
  void begin_await_others(Clock::time_point now);
  // Chief: the result is durable. Tells every ps, then waits until they let it go. Never fails.
  void begin_shutdown(Clock::time_point now);
  // After that, where nobody is waited for any more: over once the outbox is empty.
  void tell_the_end();
  // The reply's body is JSON; kDone without a body (has_text() is false) where the ps is lost.
  void begin_status(std::size_t range, Clock::time_point now);

  // --- what happens while one is under way; without effect otherwise

  // The answer to a Dial. A link that is welcomed is open; CloseLink follows where it is of no use.
  void dialed(std::size_t range, std::uint64_t attempt, const DialAnswer& answer,
              Clock::time_point now);
  // What a SendRequest asked for has left: from now on its link is silent or not.
  void sent(std::size_t range, Clock::time_point now);
  // A frame's header has come. REQUIRES: reads(range). The plan says what follows.
  [[nodiscard]] ReplyPlan header(std::size_t range, const net::FrameHeader& header,
                                 Clock::time_point now);
  // The body that the plan spoke of is in its place.
  void body(std::size_t range, Clock::time_point now);
  // The body was a refusal.
  void refused(std::size_t range, const net::Refusal& refusal, Clock::time_point now);
  // The link is broken, and closed: what was to be sent or received over it has not come whole.
  void lost(std::size_t range, std::error_code error, Clock::time_point now);
  // Who answers at the address of that ps holds nothing of this generation, which all ps held once:
  // it is another process than the one that did. A link to that one that is open still leads to
  // nobody's ps. Without effect also while the run is joined: each welcome tells then.
  void is_replaced(std::size_t ps, net::Generation generation, Clock::time_point now);
  // A ps knows a process of this task with that incarnation: another channel of this process has
  // been refused there. If it is a higher one than this process has, and the session connects for
  // the first time, it does so anew above that; as it does when a link is refused, but none has to
  // be, where that ps was lost since. Without effect otherwise.
  void hear_of_incarnation(std::uint64_t by, Clock::time_point now);
  // Nothing else has come until `now`.
  void time(Clock::time_point now);
  // `missed`: of the time until now, what this process did not see: nobody was silent or away
  // meanwhile.
  void forgive(Clock::duration missed);
  // kNeedsState: whoever sends kState now takes it from a state of this step.
  void provided(std::uint64_t step, Clock::time_point now);

  // --- queries

  [[nodiscard]] Outcome outcome() const noexcept { return outcome_; }
  // kFailed.
  [[nodiscard]] const Failure& failure() const noexcept { return *context_.failure; }
  // When time() is to be called; Clock::time_point::max(): nothing is waited for by the clock.
  [[nodiscard]] Clock::time_point deadline() const noexcept;
  // Whether a frame from there is awaited.
  [[nodiscard]] bool reads(std::size_t range) const noexcept {
    return outcome_ == Outcome::kUnderWay && exchange_.reads(range);
  }
  // kDone: what the ps have answered to the last pull or push.
  [[nodiscard]] const StepResult& reply() const noexcept { return reply_; }
  // Of the last push: the ps did not use the gradient, as it came late.
  [[nodiscard]] bool was_dropped(std::size_t range) const noexcept {
    return exchange_.was_dropped(range);
  }
  // kNeedsWork: the micro-batches that are missing.
  [[nodiscard]] std::span<const std::uint64_t> work() const noexcept { return exchange_.work(); }
  [[nodiscard]] bool was_released() const noexcept { return farewell_.was_released(); }
  [[nodiscard]] std::optional<std::uint64_t> final_step() const noexcept {
    return farewell_.final_step();
  }
  // After know_best(): the newest that this trainer, or a ps, knows of. Complete once the run has
  // been joined.
  [[nodiscard]] BestEvaluation best() const noexcept {
    return context_.best.value_or(BestEvaluation{});
  }
  // Of the last get_config or status: a body has come.
  [[nodiscard]] bool has_text() const noexcept { return has_text_; }

  [[nodiscard]] std::size_t ranges() const noexcept { return context_.ranges.size(); }
  [[nodiscard]] const RangeSession& range(std::size_t index) const {
    return context_.ranges.at(index);
  }
  // Of the state that the last exchange was about.
  [[nodiscard]] net::Generation generation() const noexcept {
    return context_.ranges.front().generation();
  }
  // A ps has said that the run is over.
  [[nodiscard]] bool is_over() const noexcept { return context_.over; }
  [[nodiscard]] bool is_replicated() const noexcept { return context_.replicated; }

  [[nodiscard]] TrainerOutbox& out() noexcept { return context_.out; }

 private:
  enum class Operation : std::uint8_t {
    kNone,
    kConnect,
    kGetConfig,
    kPull,
    kPushPull,
    kAwaitStep,
    kPeek,
    kTellBest,
    kAwaitEnd,
    kFetchFinal,
    kAwaitOthers,
    kShutdown,
    kStatus,
  };

  [[nodiscard]] static net::FrameHeader push_header(const RangeSession& session,
                                                    std::uint64_t sequence, bool cut);
  // What is made of the loss of a ps while a step is made.
  [[nodiscard]] OnLoss patience() const noexcept {
    return context_.elastic ? OnLoss::kJoinAgain : OnLoss::kRepeat;
  }
  void begin(Operation operation);
  void end(Outcome outcome) noexcept;
  // Looks at how the parts stand, and goes on.
  void advance(Clock::time_point now);
  void advance_join(Clock::time_point now);
  void advance_exchange(Clock::time_point now);
  void advance_config(Clock::time_point now);
  [[nodiscard]] bool is_stalled(Clock::time_point now);
  void begin_join(Clock::time_point now);
  void join_again(Clock::time_point now);
  void ask_for_text(std::size_t range, net::FrameKind question, net::FrameKind answer,
                    Clock::time_point now);

  RunContext context_;  // before those that refer to it
  Dialer dialer_{context_};
  StepExchange exchange_{context_, dialer_};
  Connecting connecting_{context_, dialer_};
  RunJoin join_;
  Farewell farewell_{context_, dialer_, exchange_};

  Operation operation_ = Operation::kNone;
  Outcome outcome_ = Outcome::kDone;
  StepResult reply_;
  bool joins_ = false;       // join_ is under way, for the operation's sake
  bool reconnects_ = false;  // connecting_ is, before the configuration is asked for again
  bool awaiting_ = false;    // elastic: begin_await_step() has sent its requests
  bool broken_ = false;      // elastic: a push could not be sent
  // Since then the run was joined again each time before all ps had answered, or the configuration
  // was asked for and not told.
  std::optional<Clock::time_point> stalled_since_;
  bool has_text_ = false;
  std::size_t asked_ = 0;  // the range whose status it is
};

}  // namespace disttf::roles
