// A trainer's way to all ps: what the computing thread says and hears. What is said when, and what
// is done about a ps that is lost, is roles/trainer/core/run_session.h's to decide; this has the
// sockets, the clock and the memory, and does what it says.
//
// Each call talks to all ps at once: every request is sent before the first reply is awaited, and
// the loss of any ps is noticed while others are waited for. The gradient is sent from where
// backward wrote it, parameters are received where forward reads them. A lost connection is opened
// again (the name resolved anew) and the request repeated, until Timeouts::peer has passed.
//
// A ps that lost its parameters ends nothing: pull() and push_pull() then wait until the chief has
// set all ps to one state again, and return that. Every call throws Failure when the run cannot go
// on (138), a ps refused (its sentence and code), or a signal came; and RunOver where this trainer
// would have to wait for a state that will not come any more. A worker's calls that join the run
// throw OtherConfiguration.
//
// Not thread-safe: the computing thread owns it.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/transport/eager_wait.h"
#include "net/transport/interrupt.h"
#include "net/transport/joined_bodies.h"
#include "roles/monitor/core/step_sampling.h"
#include "roles/process/log.h"
#include "roles/process/stop_signal.h"
#include "roles/run/task.h"
#include "roles/run/training_state.h"
#include "roles/trainer/core/run_session.h"
#include "roles/trainer/shell/gradient_places.h"
#include "roles/trainer/shell/host_sum.h"
#include "roles/trainer/shell/ps_link.h"
#include "roles/trainer/shell/replaced_ps.h"

namespace disttf::roles {

// The run is over, and this trainer has come too late to have a part in its end.
class RunOver : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "the run is over"; }
};

// The ps train another configuration than this trainer computes with: all ps of the run and its
// chief were lost, and the next chief has published another one. What this trainer has computed has
// no part in that run.
class OtherConfiguration : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override {
    return "the run has another configuration";
  }
};

// Where a pull or a push has brought the trainer.
struct StepReply : StepResult {
  // In the caller's memory, or where the ps has them: unchanged until the next call.
  std::span<const float> parameters = {};
};

class PsClient {
 public:
  // `task` and `stop` must outlive the client.
  PsClient(const Task& task, const StopSignal& stop);
  // Goes on as the process that another client has been, which all ps have welcomed as
  // `incarnation`. Before connect().
  void continue_as(std::uint64_t incarnation) noexcept;

  // Connects to every ps, retrying those that are not up until Timeouts::start has passed; then
  // Failure names all that are missing, and why. True when the run is over: a ps says so; then some
  // may not be connected.
  [[nodiscard]] bool connect();

  // What this process is to the ps. It may change until connect() has returned: see
  // roles/run/incarnation.h. Then each hook is called, in the order in which they were given.
  // Any thread may ask.
  [[nodiscard]] std::uint64_t incarnation() const noexcept { return incarnation_; }
  void on_incarnation(std::function<void(std::uint64_t)> hook) {
    on_incarnation_.push_back(std::move(hook));
  }
  // Before connect(): another channel of this process has been refused, since that one is known.
  void take_incarnation_above(std::uint64_t other);
  // The same, from another thread: connect() acts upon it. Without effect once that has returned.
  void hear_of_incarnation(std::uint64_t other) noexcept { heard_of_ = other; }

  // Called whenever all ps hold one state that this trainer has joined, with its generation.
  void on_joined(std::function<void(net::Generation)> hook) { on_joined_ = std::move(hook); }

  // Whether the run has --ps_replicas 2, as the configuration says.
  void expect_replicas(bool has_replicas) noexcept { session_.expect_replicas(has_replicas); }

  [[nodiscard]] std::size_t ps_count() const noexcept { return links_.size(); }
  // Of the state that the last exchange was about.
  [[nodiscard]] net::Generation generation() const noexcept { return session_.generation(); }

  // The run's configuration (JSON), asked of ps 0; waits until the chief has published it.
  [[nodiscard]] std::string get_config();

  // Of the run, known from its configuration.
  struct Run {
    std::size_t size = 0;           // floats of the parameter vector
    bool strict = true;             // every gradient counts
    std::size_t micro_batches = 0;  // elastic: of a step; 0: not elastic
    std::size_t trainers = 0;
    std::size_t gradients = 1;  // how many of a step lie in memory that a ps may read
    WireFormat wire = {};
    math::Isa isa = math::Isa::kGeneric;
    bool judges_norms = false;        // --max_gradient_norm: of each gradient
    std::uint64_t configuration = 0;  // configuration_id() of what was published
  };
  // Before the calls below.
  void prepare(const Run& run);
  // After prepare(): where the next gradient is to be computed, [size]; on a page boundary. Ps may
  // read it there once it is pushed; those that were pushed before are left alone, as long as a ps
  // may have to read them. Elastic: another one after each push().
  [[nodiscard]] std::span<float> begin_gradient();
  // That one.
  [[nodiscard]] std::span<float> gradient() const noexcept { return gradients_.current(); }

  // Chief: from now on pull() and push_pull() hand every ps this configuration (one that has it
  // already checks that it is this one) and, whenever the ps do not hold one state, at the start
  // too, set them all to the state that `provide` returns, in a new generation.
  void lead(std::string config_json, std::function<TrainingState()> provide);

  // For whoever finds out, on another thread, and may outlive this. It is acted upon by whatever
  // waits for such a ps, as a heartbeat of its ends the wait each second.
  [[nodiscard]] std::shared_ptr<ReplacedPs> replaced() const noexcept { return replaced_; }

  // Joins the run: waits until all ps hold one state and brings its parameters (the whole vector).
  StepReply pull(std::span<float> parameters);
  // Whether to tell push_ahead() how far the gradient is saves time.
  [[nodiscard]] bool pushes_ahead() const noexcept;
  // The first `ready` floats of gradient() are final: begins to push them. push_pull() with the
  // same arguments follows.
  void push_ahead(std::uint64_t sequence, bool cut, std::size_t ready);
  // gradient() holds that of the parameters that the last call brought. `sequence`: its number, see
  // Stepper::sequence(). Returns when every ps has applied (or dropped) it. Chief: with `cut`
  // the ps keep a copy of the state it leads to, by the name of `sequence`.
  // `meanwhile` is called once, while the ps are at work. Where the parameters of all ps can be
  // read where they lie, they stay there: see StepReply.
  StepReply push_pull(std::uint64_t sequence, std::span<float> parameters, bool cut = false,
                      const std::function<void()>& meanwhile = {});

  // Bytes that were sent and received in frames, since this process began.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> traffic() const noexcept;
  // Of the last call that brought parameters: when the last of them began to come. They are
  // received one ps after the other: while one's come, those of another wait, and count as having
  // come that much sooner. So what lies between this and the call's end is the time that they took
  // to come.
  [[nodiscard]] net::Deadline answer_came() const noexcept { return answer_came_; }
  [[nodiscard]] const LastPs& last_ps() const noexcept { return last_ps_; }
  // Of the last push_pull(): the ranges whose ps did not use the gradient, as it came late.
  [[nodiscard]] std::vector<math::Range> dropped_ranges() const;

  // Elastic: hands gradient(), of one micro-batch of the step that the last parameters are of, to
  // every ps that has not answered with the next ones; what becomes of it await_step() tells.
  void push(std::uint64_t micro_batch);
  // Elastic: waits until the step has been made; `parameters` must not be those that gradients
  // are computed from. False: first the micro-batches in `missing` are to be pushed, then this is
  // to be called again, with the same arguments. Where the parameters of all ps can be read where
  // they lie, they stay there: see StepReply.
  [[nodiscard]] bool await_step(std::uint64_t sequence, std::span<float> parameters, bool cut,
                                StepReply& reply, std::vector<std::uint64_t>& missing,
                                const std::function<void()>& meanwhile = {});

  // Chief: the parameters as they are now, on every ps for itself, are the run's result: into
  // `parameters` once all have come. No step is made any more. Overwrites gradient().
  StepReply peek(std::span<float> parameters);
  // Chief, while it is asked for a state: that is the result of a run that has ended early.
  void provides_result() noexcept { session_.provides_result(); }
  // Chief, with --patience: from now on each ps that is joined is told the best evaluation that
  // this chief, or another ps, knows of: best().
  void know_best(const BestEvaluation& best) { session_.know_best(best); }
  [[nodiscard]] BestEvaluation best() const noexcept { return session_.best(); }
  // All are told at once, before a step is made. REQUIRES: know_best(), and pull() has returned.
  void tell_best();

  // The end.
  //
  // Worker: has the result of the last step, and waits until the chief has made it durable. False:
  // the ps were set back to another state meanwhile; the run is to be joined again.
  [[nodiscard]] bool await_end();
  // Worker, when the run is over: the parameters that the ps hold then, and ps 0's step; nothing
  // where one of them is gone. Throws nothing but OtherConfiguration.
  [[nodiscard]] std::optional<std::uint64_t> fetch_final(std::span<float> parameters);
  // Chief: has the result, and waits until the other trainers have it too. Ps that are lost
  // meanwhile are set to it again. False: another chief has set them to a state from which there
  // are steps to be made still; the run is to be joined again. Overwrites gradient().
  [[nodiscard]] bool await_others();
  // Chief: the result is durable. Tells every ps, then waits until they let it go: the other
  // trainers have left, or have had their time to. A ps that was lost is told if it comes back
  // within a few seconds. A signal ends the waiting, not the telling: nothing is thrown.
  void shutdown();
  // Pushes that each range has used, by ps.
  [[nodiscard]] std::vector<std::uint64_t> acknowledged() const;
  // JSON; empty when the ps cannot be asked.
  [[nodiscard]] std::string status(std::size_t ps_index);

 private:
  // Answers that come without a system call while this trainer is awake.
  class AnswerLookout final : public net::Lookout {
   public:
    explicit AnswerLookout(PsClient& client) : client_(client) {}
    [[nodiscard]] bool sees() noexcept override;
    void set_asleep(bool asleep) noexcept override;

   private:
    PsClient& client_;
  };
  // Until the operation that was begun has ended. `meanwhile`: after its requests have left.
  void run(const std::function<void()>& meanwhile = {});
  // The same of one that brings parameters, to `parameters`.
  StepReply run_step(std::span<float> parameters, const std::function<void()>& meanwhile = {});
  // It is now; the time since the last operation was the trainer's own.
  [[nodiscard]] net::Deadline begin_now() noexcept;
  void await_some();
  void prepare_poll();
  // What the core wants done.
  void perform();
  void apply(const SendRequest& effect);
  void apply(const Dial& effect);
  void apply(const CloseLink& effect) { links_[effect.range].close(); }
  void apply(const NameGeneration& effect);
  void apply(const TakeIncarnation& effect) { take_incarnation_above(effect.above); }
  static void apply(const Note& effect) { log_note(effect); }
  [[nodiscard]] std::error_code send(const SendRequest& effect);
  [[nodiscard]] std::error_code send_state(const SendRequest& effect);
  // Agrees with all ps how tensors travel.
  void settle();
  // Meets the other trainers of the host, over the link to ps 0.
  [[nodiscard]] std::error_code meet_neighbours();
  // The same now and then, where they have not been met, or have been left. REQUIRES: nothing is
  // asked of a ps.
  void meet_neighbours_again();
  // The ps that are sent gradients: a bit for each.
  [[nodiscard]] HostSum::Ranges remote() const noexcept;
  // How the gradient of this push reaches the ps.
  void choose_way(const net::FrameHeader& push);
  [[nodiscard]] std::error_code push(const SendRequest& effect);
  // To ps that have been told that the gradient is in the sum of a leader that has gone.
  void push_without_leader();
  void receive(std::size_t index);
  // Its parameters begin to come.
  void note_answer(std::size_t index, net::Deadline begin) noexcept;
  [[nodiscard]] std::error_code receive_body(std::size_t index, ReplyPlan plan,
                                             const net::FrameHeader& header);
  // What another thread has heard of.
  void look_at_incarnations(net::Deadline now);
  // It is now, and what comes next may take until then: whatever this process has missed, nobody
  // was silent or away meanwhile.
  void check_awake(net::Deadline until = net::Deadline::min());
  template <typename Float>
  [[nodiscard]] std::span<Float> part_of(std::span<Float> whole, std::size_t index) const {
    const math::Range range = session_.range(index).range;
    return whole.subspan(range.begin, range.size());
  }
  // As begin_gradient(), where none is computed: what comes goes there.
  std::span<float> place_gradient();
  // Where a channel was given up, the ps at its end may have gradients still to read: it keeps that
  // memory, and the next ones are computed in another.
  void leave_memory();
  // Another step begins, and nothing is asked of a ps: the time to agree on other memory.
  void begin_step();
  // What all have answered with, as one vector: where it lies, or else in `parameters`.
  [[nodiscard]] std::span<const float> joined(std::span<float> parameters);

  const Task& task_;
  const StopSignal& stop_;
  RunSession session_;
  GradientPlaces gradients_;     // outlives the links
  bool is_memory_left_ = false;  // to a ps over whose channel nothing is said now
  std::vector<PsLink> links_;    // by ps index
  HostSum host_sum_;
  bool is_sent_ahead_ = false;  // of the gradient
  const std::shared_ptr<ReplacedPs> replaced_ = std::make_shared<ReplacedPs>();
  std::atomic<std::uint64_t> incarnation_;
  std::atomic<std::uint64_t> heard_of_ = 0;  // another process's; 0: of none
  std::vector<std::function<void(std::uint64_t)>> on_incarnation_;
  std::function<void(net::Generation)> on_joined_;
  std::string config_json_;                       // chief
  std::function<TrainingState()> provide_state_;  // chief
  net::JoinedBodies joined_bodies_;
  std::optional<std::size_t> in_place_;  // ps that were found to be read in place, as last logged
  // Of the operation under way; kept so that a step allocates nothing.
  std::span<float> parameters_;                // where they are received
  bool may_stay_ = false;                      // or they stay where the ps has them:
  std::vector<net::BodyPlace> places_;         // there; without a view: in the caller's memory
  std::vector<net::BodyPlace> places_before_;  // of the reply before, which may be read meanwhile
  std::optional<TrainingState> state_;         // chief: what the ps are being set to
  net::Deadline answer_came_{};
  bool has_answer_ = false;           // of the operation under way
  net::Clock::duration receiving_{};  // its parameters, so far
  LastPs last_ps_;
  std::string text_;            // a reply's
  std::vector<pollfd> polled_;  // one more: the interrupt's
  bool polls_ = false;          // something is waited for besides
  net::EagerWait wait_;
  net::FreezeWatch awake_;  // while an operation is under way
  AnswerLookout lookout_{*this};
};

}  // namespace disttf::roles
