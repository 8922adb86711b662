// A trainer's connections to all ps, as the computing thread uses them.
// roles/trainer/core/run_session.h decides what is sent when, and how the loss of a ps is handled;
// this class has the sockets, the clock and the memory, and carries that out.
//
// Each call communicates with all ps at once: every request is sent before the first reply is
// awaited, and the loss of any ps is noticed while others are waited for. The gradient is sent from
// where backward wrote it, and parameters are received where forward reads them. A lost connection
// is opened again (with a new name lookup) and the request repeated, until Timeouts::peer has
// passed.
//
// A ps that has lost its parameters does not end the run: pull() and push_pull() then wait until
// the chief has restored all ps to one state, and return that. Every call throws Failure if the run
// cannot go on (138), if a ps refuses (with its sentence and code), or on a signal; and RunOver if
// this trainer would have to wait for a state that will not come. Calls of a worker that join the
// run throw OtherConfiguration.
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

#include "net/memory/bodies_in_place.h"
#include "net/waiting/interrupt.h"
#include "net/waiting/spin_then_park.h"
#include "roles/trainer/core/run_session.h"
#include "roles/trainer/shell/gradient_buffers.h"
#include "roles/trainer/shell/host_sum.h"
#include "roles/trainer/shell/ps_link.h"
#include "roles/trainer/shell/replaced_ps.h"
#include "run/monitor/core/step_sampling.h"
#include "run/process/log.h"
#include "run/process/stop_signal.h"
#include "run/task.h"
#include "run/training_state.h"

namespace disttf::roles {

// The run is over, and this trainer came too late to take part in its end.
class RunOver : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "the run is over"; }
};

// The ps train another configuration than this trainer computes with: all ps of the run and its
// chief were lost, and the next chief has published another one. What this trainer has computed is
// not part of that run.
class OtherConfiguration : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override {
    return "the run has another configuration";
  }
};

// The result of a pull or a push.
struct StepReply : StepResult {
  // In the caller's memory, or in that of the ps: unchanged until the next call.
  std::span<const float> parameters = {};
};

class PsClient {
 public:
  // `task` and `stop` must outlive the client.
  PsClient(const Task& task, const StopSignal& stop);
  // Continues as the process that another client was, which all ps have welcomed as `incarnation`.
  // To be called before connect().
  void continue_as(std::uint64_t incarnation) noexcept;

  // Connects to every ps, and retries until Timeouts::start has passed; then throws a Failure that
  // names the missing ps and their errors. Returns true if a ps reports that the run is over; some
  // ps may not be connected then.
  [[nodiscard]] bool connect();

  // Returns this process's incarnation. It may change until connect() has returned, see
  // run/task.h; each hook is then called, in the order of registration. Callable from
  // any thread.
  [[nodiscard]] std::uint64_t incarnation() const noexcept { return incarnation_; }
  void on_incarnation(std::function<void(std::uint64_t)> hook) {
    on_incarnation_.push_back(std::move(hook));
  }
  // Before connect(): another channel of this process was refused because of that incarnation.
  void take_incarnation_above(std::uint64_t other);
  // The same, from another thread: connect() handles it. No effect once that has returned.
  void record_incarnation(std::uint64_t other) noexcept { reported_incarnation_ = other; }

  // Called whenever this trainer has joined a state that all ps hold, with its generation.
  void on_joined(std::function<void(net::Generation)> hook) { on_joined_ = std::move(hook); }

  // Sets whether the run has --ps_replicas 2, from the configuration.
  void expect_replicas(bool has_replicas) noexcept { session_.expect_replicas(has_replicas); }

  [[nodiscard]] std::size_t ps_count() const noexcept { return links_.size(); }
  // Of the state of the last exchange.
  [[nodiscard]] net::Generation generation() const noexcept { return session_.generation(); }

  // Returns the run's configuration (JSON) from ps 0; waits until the chief has published it.
  [[nodiscard]] std::string get_config();

  // The run, known from its configuration.
  struct Run {
    std::size_t size = 0;           // floats of the parameter vector
    bool fully_synchronous = true;  // every gradient counts
    std::size_t micro_batches = 0;  // elastic: per step; 0: not elastic
    std::size_t trainers = 0;
    std::size_t gradients = 1;  // per step, in memory that a ps may read
    WireFormat wire = {};
    math::Isa isa = math::Isa::kGeneric;
    bool judges_norms = false;        // --max_gradient_norm: the ps check each gradient
    std::uint64_t configuration = 0;  // configuration_id() of the published one
  };
  // To be called before the calls below.
  void prepare(const Run& run);
  // After prepare(): returns where to compute the next gradient, [size], page-aligned. Ps may read
  // it there once it is pushed; earlier gradients are not overwritten while a ps may read them.
  // Elastic: another place after each push().
  [[nodiscard]] std::span<float> begin_gradient();
  // The same one again.
  [[nodiscard]] std::span<float> gradient() const noexcept { return gradients_.current(); }

  // Chief: from now on pull() and push_pull() publish this configuration to every ps (a ps that has
  // one checks that it is the same). Whenever the ps do not hold one state, at the start too, they
  // restore all ps to the state that `provide` returns, in a new generation.
  void lead(std::string config_json, std::function<TrainingState()> provide);

  // For another thread that notices replaced ps, and may outlive this client. A call that waits for
  // such a ps handles it within a second, when the next heartbeat wakes it.
  [[nodiscard]] std::shared_ptr<ReplacedPs> replaced() const noexcept { return replaced_; }

  // Joins the run: waits until all ps hold one state, and receives its parameters (the whole
  // vector).
  StepReply pull(std::span<float> parameters);
  // Returns whether calling push_ahead() saves time.
  [[nodiscard]] bool pushes_ahead() const noexcept;
  // The first `ready` floats of gradient() are final: begins to push them. push_pull() with the
  // same arguments follows.
  void push_ahead(std::uint64_t sequence, bool keep_snapshot, std::size_t ready);
  // Pushes gradient(), computed from the parameters of the last call. `sequence`: its number, see
  // Stepper::sequence(). Returns when every ps has applied (or dropped) it. Chief: with
  // `keep_snapshot` the ps take a snapshot of the state that it leads to, named `sequence`.
  // `meanwhile` is called once, while the ps work. If the parameters of all ps can be read in
  // shared memory, they stay there: see StepReply.
  StepReply push_pull(std::uint64_t sequence, std::span<float> parameters,
                      bool keep_snapshot = false, const std::function<void()>& meanwhile = {});

  // Bytes sent and received in frames since this process began.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> traffic() const noexcept;
  // Of the last call that received parameters: when the last of them began to arrive. They are
  // received from one ps after the other. While one ps's are received, those of another wait; they
  // count as having arrived that much earlier. So the time from here to the end of the call is the
  // time of the transfer.
  [[nodiscard]] net::Deadline answer_came() const noexcept { return answer_came_; }
  [[nodiscard]] const LastPs& last_ps() const noexcept { return last_ps_; }
  // Of the last push_pull(): the ranges whose ps did not use the gradient because it came too late.
  [[nodiscard]] std::vector<math::Range> dropped_ranges() const;

  // Elastic: pushes gradient(), of one micro-batch of the step of the last parameters, to every ps
  // that has not answered with the next ones; await_step() reports the outcome.
  void push(std::uint64_t micro_batch);
  // Elastic: waits until the step has been made. `parameters` must not be those that gradients are
  // computed from. Returns false if the micro-batches in `missing` are to be pushed first, and this
  // is to be called again with the same arguments. If the parameters of all ps can be read in
  // shared memory, they stay there: see StepReply.
  [[nodiscard]] bool await_step(std::uint64_t sequence, std::span<float> parameters,
                                bool keep_snapshot, StepReply& reply,
                                std::vector<std::uint64_t>& missing,
                                const std::function<void()>& meanwhile = {});

  // Chief: the current parameters of every ps are the run's result, and are copied to `parameters`
  // once all have arrived. No step is made any more. Overwrites gradient().
  StepReply peek(std::span<float> parameters);
  // Chief, while it is asked for a state: that state is the result of a run that has stopped early.
  void provides_result() noexcept { session_.provides_result(); }
  // Chief, with --patience: from now on each ps that is joined receives the best evaluation that
  // this chief or a ps has recorded: best().
  void record_best(const BestEvaluation& best) { session_.record_best(best); }
  [[nodiscard]] BestEvaluation best() const noexcept { return session_.best(); }
  // Sends it to all ps at once, before a step is made. REQUIRES: record_best(), and pull() has
  // returned.
  void send_best();

  // The end.
  //
  // Worker: has the result of the last step, and waits until the chief has made it durable. Returns
  // false if the ps were rolled back to another state meanwhile; the run is to be joined again.
  [[nodiscard]] bool await_end();
  // Worker, when the run is over: fetches the parameters that the ps hold then. Returns ps 0's
  // step, or nothing if a ps has gone. Throws nothing but OtherConfiguration.
  [[nodiscard]] std::optional<std::uint64_t> fetch_final(std::span<float> parameters);
  // Chief: has the result, and waits until the other trainers have it, too. Ps that are lost
  // meanwhile are restored to it. Returns false if another chief has restored the ps to a state
  // with steps still to be made; the run is to be joined again. Overwrites gradient().
  [[nodiscard]] bool await_others();
  // Chief: the result is durable. Notifies every ps, then waits until they release it: the other
  // trainers have left, or have exceeded their time to leave. A ps that was lost is notified if it
  // comes back within a few seconds. A signal ends the waiting but not the notification: nothing is
  // thrown.
  void shutdown();
  // Returns the pushes that each range has used, by ps.
  [[nodiscard]] std::vector<std::uint64_t> acknowledged() const;
  // JSON; empty if the ps cannot be asked.
  [[nodiscard]] std::string status(std::size_t ps_index);

 private:
  // Polls for answers that arrive without a system call while this trainer is awake.
  class AnswerPoller final : public net::Poller {
   public:
    explicit AnswerPoller(PsClient& client) : client_(client) {}
    [[nodiscard]] bool is_ready() noexcept override;
    void set_parked(bool parked) noexcept override;

   private:
    PsClient& client_;
  };
  // Runs the current operation to its end. `meanwhile`: called after its requests were sent.
  void run(const std::function<void()>& meanwhile = {});
  // The same for an operation that receives parameters, into `parameters`.
  StepReply run_step(std::span<float> parameters, const std::function<void()>& meanwhile = {});
  // Returns the current time. The time since the last operation does not count toward any timeout.
  [[nodiscard]] net::Deadline begin_now() noexcept;
  void await_some();
  void prepare_poll();
  // The core's effects.
  void perform();
  void apply(const SendRequest& effect);
  void apply(const Dial& effect);
  void apply(const CloseLink& effect) { links_[effect.range].close(); }
  void apply(const NameGeneration& effect);
  void apply(const TakeIncarnation& effect) { take_incarnation_above(effect.above); }
  static void apply(const Note& effect) { log_note(effect); }
  [[nodiscard]] std::error_code send(const SendRequest& effect);
  [[nodiscard]] std::error_code send_state(const SendRequest& effect);
  // Agrees with all ps on how tensors are transferred.
  void settle();
  // Meets the other trainers of the host, over the link to ps 0.
  [[nodiscard]] std::error_code discover_neighbours();
  // The same, now and then, if they were not met or were left. REQUIRES: no request to a ps is
  // outstanding.
  void discover_neighbours_again();
  // Returns the ps that are sent gradients: a bit for each.
  [[nodiscard]] HostSum::Ranges remote() const noexcept;
  // Decides how the gradient of this push reaches the ps.
  void choose_way(const net::FrameHeader& push);
  [[nodiscard]] std::error_code push(const SendRequest& effect);
  // Pushes to each ps that expects the gradient in the sum of a leader that has gone.
  void push_without_leader();
  void receive(std::size_t index);
  // A ps's parameters begin to arrive.
  void note_answer(std::size_t index, net::Deadline begin) noexcept;
  [[nodiscard]] std::error_code receive_body(std::size_t index, ReplyPlan plan,
                                             const net::FrameHeader& header);
  // Handles what another thread has reported.
  void look_at_incarnations(net::Deadline now);
  // It is now, and the next call may take until `until`. Time for which this process was suspended
  // does not count toward any timeout.
  void check_awake(net::Deadline until = net::Deadline::min());
  template <typename Float>
  [[nodiscard]] std::span<Float> part_of(std::span<Float> whole, std::size_t index) const {
    const math::Range range = session_.range(index).range;
    return whole.subspan(range.begin, range.size());
  }
  // Like begin_gradient(), if no gradient is computed: received parameters are stored there.
  std::span<float> place_gradient();
  // If a channel was abandoned, the ps at its end may still read gradients: that memory is left to
  // it, and the next gradients are computed in another one.
  void leave_memory();
  // Another step begins, and no request to a ps is outstanding: the time to agree on other memory.
  void begin_step();
  // Returns all answers as one vector: where they lie, or else copied to `parameters`.
  [[nodiscard]] std::span<const float> joined(std::span<float> parameters);

  const Task& task_;
  const StopSignal& stop_;
  RunSession session_;
  GradientBuffers gradients_;    // outlives the links
  bool is_memory_left_ = false;  // left to a ps whose channel is idle now
  std::vector<PsLink> links_;    // by ps index
  HostSum host_sum_;
  bool is_sent_ahead_ = false;  // part of the gradient
  const std::shared_ptr<ReplacedPs> replaced_ = std::make_shared<ReplacedPs>();
  std::atomic<std::uint64_t> incarnation_;
  std::atomic<std::uint64_t> reported_incarnation_ = 0;  // incarnation of another process; 0: none
  std::vector<std::function<void(std::uint64_t)>> on_incarnation_;
  std::function<void(net::Generation)> on_joined_;
  std::string config_json_;                       // chief
  std::function<TrainingState()> provide_state_;  // chief
  net::JoinedBodies joined_bodies_;
  std::optional<std::size_t> in_place_;  // number of ps read in place, as logged last
  // Of the current operation; reused, so that a step allocates nothing.
  std::span<float> parameters_;            // where they are received
  bool may_stay_ = false;                  // or they stay where the ps has them:
  std::vector<net::BodyLocation> places_;  // there; without a view: in the caller's memory
  std::vector<net::BodyLocation>
      places_before_;                   // of the previous reply, which may be read meanwhile
  std::optional<TrainingState> state_;  // chief: the state being restored
  net::Deadline answer_came_{};
  bool has_answer_ = false;           // of the current operation
  net::Clock::duration receiving_{};  // the parameters, so far
  LastPs last_ps_;
  std::string text_;            // a reply's
  std::vector<pollfd> polled_;  // one more: the interrupt
  bool polls_ = false;          // anything besides the interrupt is awaited
  net::SpinThenPark wait_;
  net::FreezeWatch awake_;  // while an operation is in progress
  AnswerPoller poller_{*this};
};

}  // namespace disttf::roles
