// A trainer's part in a run, as seen by the ps: which requests it sends to which ps and when, how
// it detects that one is lost, and how it recovers. Its parts:
//   range_session.h    one range: which state of it this trainer works on
//   dialer.h           opens one link: which host of the range, until when
//   step_exchange.h    one request to every range, until all have answered
//   run_join.h         how a trainer joins the run's state, and joins it again
//   shutdown_protocol.h         how it leaves
//
// A state machine. Its calls report events with their time. It puts effects into the outbox, which
// the caller empties after each call (but for queries), in order. It does not handle the bytes of
// tensors: it says where the body of a frame goes, and is called when the body has been read.
// Randomness (the pause before the next attempt) is a function of the engine passed to the
// constructor.
//
// How to drive it:
//
//   session.begin_push_pull(sequence, cut, now);
//   while (session.outcome() == RunSession::Outcome::kUnderWay) {
//     empty the outbox: each SendRequest ends in sent() or lost(), each Dial in dialed();
//     wait until a link has something that session.reads(link), or for session.deadline();
//     for each frame:  plan = session.header(...); read the body into its place; session.body(...)
//     for each broken link that session.reads(): session.lost(...)
//     session.time(now);   // after what has arrived: a ps that has sent something is alive
//   }
//   session.reply()
//
// One operation at a time: begin_...() abandons an unfinished one. Links outlast operations. A link
// is read only while reads() is true; frames that arrive meanwhile wait.
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
#include "roles/trainer/core/dialer.h"
#include "roles/trainer/core/range_session.h"
#include "roles/trainer/core/run_context.h"
#include "roles/trainer/core/run_join.h"
#include "roles/trainer/core/shutdown_protocol.h"
#include "roles/trainer/core/step_exchange.h"
#include "roles/trainer/core/trainer_outbox.h"
#include "run/outcome.h"
#include "run/task.h"

namespace disttf::roles {

class RunSession {
 public:
  // The state of the operation. It has ended, except for kUnderWay, kNeedsState and kNeedsWork.
  enum class Outcome : std::uint8_t {
    kUnderWay,
    kDone,
    kRunOver,     // what this trainer would wait for will not come
    kFailed,      // failure() says why, and with which code the task ends
    kNeedsState,  // chief: the ps are to be restored; continue with provided()
    kNeedsWork,   // elastic: work() is to be pushed; continue with begin_await_step()
    // The run has another configuration than this trainer computes with: another chief has begun it
    // again. The last body was that configuration.
    kOtherConfiguration,
  };

  // `task` must outlive it. `random`: seeded at random, differently in each process.
  RunSession(const Task& task, std::mt19937_64 random);
  RunSession(const RunSession&) = delete;
  RunSession& operator=(const RunSession&) = delete;
  ~RunSession() = default;

  // --- facts about the run

  // Sets whether the run has --ps_replicas 2, from the configuration; before that any ps may report
  // it.
  void expect_replicas(bool has_replicas) noexcept {
    context_.replicated = has_replicas;
    context_.is_replication_known = true;
    if (!has_replicas) {
      context_.use_own_hosts();
    }
  }
  struct Run {
    std::size_t size = 0;           // floats of the parameter vector
    bool fully_synchronous = true;  // every gradient counts
    bool elastic = false;
    std::uint64_t configuration = 0;  // configuration_id() of what is published; 0: not known
  };
  // TakeIncarnation was carried out: this is the process's incarnation now.
  void took_incarnation(std::uint64_t incarnation) noexcept { context_.incarnation = incarnation; }
  // Instead: another session of this process has connected to all ps as `incarnation`. If a ps
  // refuses it from now on, a newer process exists, and that one takes precedence.
  void continue_as(std::uint64_t incarnation) noexcept {
    context_.incarnation = incarnation;
    context_.has_connected = true;
  }
  // To be called before the operations from begin_pull() on.
  void prepare(const Run& run);
  // Chief: from now on this trainer publishes, and restores ps that hold no state.
  void lead() noexcept { join_.lead(); }

  // Chief, with --patience: this evaluation is the best so far, found or read from a checkpoint; or
  // there is none yet.
  void record_best(const BestEvaluation& best) {
    BestEvaluation newest = this->best();
    newest.learn(best);
    context_.best = newest;
  }

  // Chief: the state that it is about to provide is the result of a run that has stopped early.
  void provides_result() noexcept { join_.has_ended(0); }

  // --- operations

  // Connects to every ps, and retries until Timeouts::start has passed. kRunOver: a ps has reported
  // the end of the run; some ps may not be connected. Until it has connected, this process may turn
  // out to have an older incarnation than its predecessor, because of its clock, and take a higher
  // one. After that a refusal because of another process means that this one was replaced, and it
  // fails.
  void begin_connect(Clock::time_point now);
  // The reply's body is the run's configuration, from ps 0, once the chief has published it.
  void begin_get_config(Clock::time_point now);
  // Joins the run: until all ps hold one state, and its parameters have arrived.
  void begin_pull(Clock::time_point now);
  // Pushes the gradient of the parameters of the last reply. If a ps has lost its state, the run is
  // joined again, and reply().joined is set. `sequence`: Stepper::sequence(). `keep_snapshot`: the
  // ps take a snapshot of the state that it leads to.
  void begin_push_pull(std::uint64_t sequence, bool keep_snapshot, Clock::time_point now);
  // Returns the header that begin_push_pull() with the same arguments will send to that range,
  // unless the link is lost before; for a caller that begins to send it earlier.
  [[nodiscard]] net::FrameHeader push_header_ahead(std::size_t range, std::uint64_t sequence,
                                                   bool keep_snapshot);
  // Elastic: sends the gradient of one micro-batch to every ps that has not answered with the next
  // step's parameters. Done once the outbox is empty; begin_await_step() reports the outcome.
  void push(std::uint64_t micro_batch);
  // Elastic: waits until the step has been made. After kNeedsWork: continues, with the same
  // arguments.
  void begin_await_step(std::uint64_t sequence, bool keep_snapshot, Clock::time_point now);
  // Chief: the current parameters of every ps are the run's result, and no step is made any more.
  // If every gradient counts, that ends the run before its last step. kDone: reply().finished, or
  // reply().joined if the state was lost before all ps were notified.
  void begin_peek(Clock::time_point now);
  // Chief: sends every ps the best evaluation on record. If the state is lost meanwhile, the next
  // operation notices, and the ps receive it when the run is joined again. REQUIRES: record_best().
  void begin_send_best(Clock::time_point now);

  // Worker: sends GOODBYE, and waits until the result is durable. kDone: was_released() returns
  // whether it is; otherwise the ps were rolled back, and the run is to be joined again.
  void begin_await_end(Clock::time_point now);
  // Worker, when the run is over: fetches the parameters that the ps hold then. kDone: final_step()
  // returns their step, or nothing if a ps has gone.
  void begin_fetch_final(Clock::time_point now);
  // Chief: sends GOODBYE, and waits until the other trainers have the result, too. Ps that are lost
  // meanwhile are restored to it. kDone: reply().joined if another chief has restored the ps to a
  // state with steps still to be made; the run is to be joined again.
  void begin_await_others(Clock::time_point now);
  // Chief: the result is durable. Notifies every ps, then waits until they release it. Never fails.
  void begin_shutdown(Clock::time_point now);
  // After that, without waiting any more: done once the outbox is empty.
  void announce_end();
  // The reply's body is JSON; kDone without a body (has_text() is false) if the ps is lost.
  void begin_status(std::size_t range, Clock::time_point now);

  // --- what happens while one is under way; without effect otherwise

  // The answer to a Dial. A welcomed link is open; CloseLink follows if it is not needed.
  void dialed(std::size_t range, std::uint64_t attempt, const DialAnswer& answer,
              Clock::time_point now);
  // A SendRequest has been sent: the heartbeat timeout of its link starts.
  void sent(std::size_t range, Clock::time_point now);
  // A frame's header has arrived. The plan says what follows. REQUIRES: reads(range).
  [[nodiscard]] ReplyPlan header(std::size_t range, const net::FrameHeader& header,
                                 Clock::time_point now);
  // The body that the plan asked for has been read.
  void body(std::size_t range, Clock::time_point now);
  // The body was a refusal.
  void refused(std::size_t range, const net::Refusal& refusal, Clock::time_point now);
  // The link has broken and is closed: a frame being sent or received over it is incomplete.
  void lost(std::size_t range, std::error_code error, Clock::time_point now);
  // The process at the address of that ps holds nothing of this generation, which all ps have held:
  // it has replaced the one that did. An open link to the older process leads nowhere. No effect
  // while the run is being joined, because each welcome reports the state then.
  void is_replaced(std::size_t ps, net::Generation generation, Clock::time_point now);
  // A ps has refused another channel of this process, since it knows a process of this task with
  // that incarnation. If that is higher than this process's, and the session connects for the first
  // time, it connects again with an incarnation above it. The same happens when a link is refused,
  // but a link need not be refused if that ps was lost since. No effect otherwise.
  void record_incarnation(std::uint64_t by, Clock::time_point now);
  // Nothing else has arrived until `now`.
  void time(Clock::time_point now);
  // `missed`: how much of the time until now this process was suspended. It counts toward no
  // timeout.
  void forgive(Clock::duration missed);
  // kNeedsState: kState bodies sent from now on are taken from a state of this step.
  void provided(std::uint64_t step, Clock::time_point now);

  // --- queries

  [[nodiscard]] Outcome outcome() const noexcept { return outcome_; }
  // REQUIRES: kFailed.
  [[nodiscard]] const Failure& failure() const noexcept { return *context_.failure; }
  // Returns when time() is to be called; Clock::time_point::max(): no timer is running.
  [[nodiscard]] Clock::time_point deadline() const noexcept;
  // Returns whether a frame from there is awaited.
  [[nodiscard]] bool reads(std::size_t range) const noexcept {
    return outcome_ == Outcome::kUnderWay && exchange_.reads(range);
  }
  // kDone: the answers of the ps to the last pull or push.
  [[nodiscard]] const StepResult& reply() const noexcept { return reply_; }
  // Returns whether this ps dropped the gradient of the last push because it came too late.
  [[nodiscard]] bool was_dropped(std::size_t range) const noexcept {
    return exchange_.was_dropped(range);
  }
  // kNeedsWork: the missing micro-batches.
  [[nodiscard]] std::span<const std::uint64_t> work() const noexcept { return exchange_.work(); }
  [[nodiscard]] bool was_released() const noexcept { return shutdown_protocol_.was_released(); }
  [[nodiscard]] std::optional<std::uint64_t> final_step() const noexcept {
    return shutdown_protocol_.final_step();
  }
  // After record_best(): the best evaluation that this trainer or a ps has recorded. Complete once
  // the run has been joined.
  [[nodiscard]] BestEvaluation best() const noexcept {
    return context_.best.value_or(BestEvaluation{});
  }
  // Of the last get_config or status: whether a body has arrived.
  [[nodiscard]] bool has_text() const noexcept { return has_text_; }

  [[nodiscard]] std::size_t ranges() const noexcept { return context_.ranges.size(); }
  [[nodiscard]] const RangeSession& range(std::size_t index) const {
    return context_.ranges.at(index);
  }
  // Of the state of the last exchange.
  [[nodiscard]] net::Generation generation() const noexcept {
    return context_.ranges.front().generation();
  }
  // Returns whether a ps has reported the end of the run.
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
    kSendBest,
    kAwaitEnd,
    kFetchFinal,
    kAwaitOthers,
    kShutdown,
    kStatus,
  };

  [[nodiscard]] static net::FrameHeader push_header(const RangeSession& session,
                                                    std::uint64_t sequence, bool keep_snapshot);
  // How the loss of a ps is handled while a step is made.
  [[nodiscard]] OnLoss patience() const noexcept {
    return context_.elastic ? OnLoss::kJoinAgain : OnLoss::kRepeat;
  }
  void begin(Operation operation);
  void end(Outcome outcome) noexcept;
  // Checks the state of the parts, and continues.
  void advance(Clock::time_point now);
  void advance_join(Clock::time_point now);
  void advance_exchange(Clock::time_point now);
  void advance_config(Clock::time_point now);
  [[nodiscard]] bool is_stalled(Clock::time_point now);
  void begin_join(Clock::time_point now);
  void join_again(Clock::time_point now);
  void ask_for_text(std::size_t range, net::FrameKind question, net::FrameKind answer,
                    Clock::time_point now);

  RunContext context_;  // before the members that refer to it
  Dialer dialer_{context_};
  StepExchange exchange_{context_, dialer_};
  Connecting connecting_{context_, dialer_};
  RunJoin join_;
  ShutdownProtocol shutdown_protocol_{context_, dialer_, exchange_};

  Operation operation_ = Operation::kNone;
  Outcome outcome_ = Outcome::kDone;
  StepResult reply_;
  bool joins_ = false;       // join_ is under way, as part of the operation
  bool reconnects_ = false;  // connecting_ is, before the configuration is requested again
  bool awaiting_ = false;    // elastic: begin_await_step() has sent its requests
  bool broken_ = false;      // elastic: a push could not be sent
  // Since when the run has been joined again each time before all ps had answered, or the
  // configuration was requested and not received.
  std::optional<Clock::time_point> stalled_since_;
  bool has_text_ = false;
  std::size_t asked_ = 0;  // the range whose status was requested
};

}  // namespace disttf::roles
