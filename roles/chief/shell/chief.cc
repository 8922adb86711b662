#include "roles/chief/shell/chief.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "data/json/json_text.h"
#include "model/trained_model.h"
#include "roles/chief/core/early_stop.h"
#include "roles/chief/core/run_leader.h"
#include "roles/chief/shell/checkpointer.h"
#include "roles/chief/shell/chief_page.h"
#include "roles/chief/shell/failover_thread.h"
#include "roles/chief/shell/run_monitor.h"
#include "roles/chief/shell/run_pictures.h"
#include "roles/chief/shell/summaries.h"
#include "roles/trainer/shell/built_in_source.h"
#include "run/monitor/shell/page_server.h"
#include "run/monitor/shell/process_facts.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/stop_signal.h"
#include "run/result_text.h"
#include "storage/checkpoint/shell/held_run_lock.h"

namespace disttf::roles {
namespace {

// The time for a reader of standard output to read the result.
constexpr std::chrono::seconds kResultIsTaken{2};

// A ps that is not up yet is waited for when it is connected to.
constexpr std::chrono::milliseconds kFirstViews{500};

// Returns the state that the run goes on from if the ps do not hold one state.
TrainingState state_to_train(const RunLeader& leader, Trainer& trainer,
                             Checkpointer& checkpointer) {
  if (leader.has_result()) {  // a ps was lost after the last step
    TrainingState state{.step = trainer.reply().step};
    state.parameters = math::AlignedVector(trainer.parameters().size());
    const std::span<const float> parameters = trainer.parameters();
    std::copy(parameters.begin(), parameters.end(), state.parameters.data());
    return state;
  }
  if (std::optional<TrainingState> newest = checkpointer.newest()) {
    return std::move(*newest);
  }
  TrainingState initial;
  initial.parameters = math::AlignedVector(trainer.layout().size());
  trainer.source().initialize(initial.parameters.span());
  const std::size_t count = trainer.layout().parameter_count();
  log_info("Variables initialized: " + std::to_string(count) +
           (count == 1 ? " parameter on " : " parameters on ") +
           std::to_string(trainer.client().ps_count()) + " ps");
  return initial;
}

// Logs rejected gradients, and what modes that skip gradients cost: late gradients dropped,
// staleness.
void log_summary(const RunConfig& config, const std::string& status) {
  // The status is empty if ps 0 was lost just then; the summary is left out.
  const auto counters = data::parse_json(status);
  if (!counters.is_object()) {
    return;
  }
  if (const auto bad = counters.value("bad", 0ULL); bad > 0) {
    log_warning("Non-finite or oversized gradients on ps 0: " + std::to_string(bad) +
                (config.rejected_gradients == RejectedGradients::kCount ? ", used all the same"
                                                                        : ", refused"));
  }
  if (config.every_gradient_counts()) {
    return;
  }
  const double applied = counters.value("applied", 0.0);
  if (config.sync_replicas) {
    log_info("Gradients on ps 0: " + std::to_string(counters.value("applied", 0ULL)) +
             " applied, " + std::to_string(counters.value("dropped", 0ULL)) +
             " came late and were dropped");
  } else if (applied > 0) {
    log_info(fmt::format("Staleness on ps 0: mean {:.2f}, max {:.0f} steps",
                         counters.value("staleness_sum", 0.0) / applied,
                         counters.value("staleness_max", 0.0)));
  }
}

// Carries out the actions of the run's leader.
class Leading {
 public:
  // `page`: nullptr if this run has none here.
  Leading(const TrainerOptions& options, StopSignal& stop, PageThread* page)
      : options_(options), stop_(stop), page_(page), trainer_(options, stop) {
    if (!options.checkpoint.train_dir.empty()) {
      // Before anything else: another run must not write to the same directory.
      lock_.emplace(options.checkpoint.train_dir, options.task.cluster, stop);
    }
    RunConfig given = options.config;
    given.trainers = options.task.cluster.trainer_count();
    const RunConfig config = trainer_.source().complete(given);
    trainer_.prepare(config, configuration_id(to_json(config)));
    early_stop_.emplace(EarlyStop::Rule{.train_steps = config.train_steps,
                                        .eval_every = config.eval_every,
                                        .target_accuracy = config.target_accuracy,
                                        .patience = config.patience});
    leader_.emplace(RunLeader::Run{.saves = !options.checkpoint.train_dir.empty(),
                                   .every_gradient_counts = config.every_gradient_counts(),
                                   .replicated = config.ps_replicas > 1});
  }

  [[nodiscard]] std::chrono::nanoseconds time_of_evaluation() const { return time_of_evaluation_; }

  void run() {
    if (config().ps_replicas > 1) {
      watch_hosts();
    }
    while (leader_->next() != RunLeader::Action::kEnd) {
      try {
        take_action();
      } catch (const RunOver&) {
        leader_->run_over();
      } catch (const Failure& failure) {
        leader_->failed(failure.exit_code(), net::Clock::now());
        failure_.emplace(failure);
      }
      leader_->notes().drain([](const Note& note) { log_note(note); });
    }
    if (failure_) {
      // A failure that a restart of the task fixes does not end the run.
      if (summaries_ && failure_->exit_code() == kError) {
        summaries_->ended(/*is_success=*/false);
      }
      throw Failure(*failure_);
    }
  }

 private:
  // Watches the hosts of every range for as long as this chief lives, under any incarnation that it
  // takes.
  void watch_hosts() {
    PsClient& client = trainer_.client();
    const auto watch = [this](std::uint64_t incarnation) {
      // The ps refuse the old incarnation from now on, so its watch ends first.
      failover_.reset();
      failover_.emplace(options_.task, incarnation, trainer_.client(), stop_);
    };
    client.on_incarnation(watch);
    watch(client.incarnation());
    FailoverThread::Found found = failover_->await_views(kFirstViews);
    stop_.throw_if_stopped();
    // A host knows another process of this chief: take a higher incarnation, and watch again with
    // it.
    if (found.replaced_by != 0) {
      client.take_incarnation_above(found.replaced_by);
      found = failover_->await_views(kFirstViews);
    }
    if (found.is_run_over) {
      leader_->run_over();
    }
  }

  [[nodiscard]] const RunConfig& config() const noexcept { return trainer_.config(); }
  // Empty for a user's program.
  [[nodiscard]] const data::Dataset& dataset() {
    static const data::Dataset kNone;
    BuiltInSource* const built_in = trainer_.source().built_in();
    return built_in == nullptr ? kNone : built_in->dataset();
  }

  void take_action() {
    using Action = RunLeader::Action;
    switch (leader_->next()) {
      case Action::kConnect:
        leader_->connected(trainer_.client().connect());
        // From now on a newer process replaces this one. Before, this one takes a higher
        // incarnation.
        if (failover_) {
          failover_->settle();
        }
        break;
      case Action::kTrain:
        train();
        leader_->trained();
        break;
      case Action::kAwaitOthers: {
        // Other trainers may still push here, and a lost ps is restored to the result meanwhile.
        const bool are_done = trainer_.await_others();
        leader_->others_done(are_done, net::Clock::now());
        break;
      }
      case Action::kPeek: {
        const bool are_done = trainer_.peek();
        leader_->peeked(are_done, net::Clock::now());
        break;
      }
      case Action::kSave: {
        // A resumed run must decide as this one would have.
        keep_all_known(/*has_result=*/true);
        const bool is_done =
            checkpointer_->save_final(trainer_.client().generation(), leader_->deadline());
        leader_->saved(is_done, net::Clock::now());
        break;
      }
      case Action::kPause:
        // A signal ends the pause early.
        stop_.interrupt().wait_until(leader_->deadline());
        stop_.throw_if_stopped();
        leader_->paused();
        break;
      case Action::kConclude:
        conclude();
        leader_->concluded();
        break;
      case Action::kSaveAndFail:
        save_before_the_end();
        leader_->ended();
        break;
      case Action::kAnnounceEnd:
        announce_end();
        leader_->told(net::Clock::now());
        break;
      case Action::kEndViews:
        failover_->finish(leader_->deadline());
        leader_->ended();
        break;
      case Action::kEnd:
        break;
    }
  }

  void train() {
    // Only once: after a rollback the same monitor and checkpointer go on.
    if (!checkpointer_) {
      begin_to_lead();
    }
    trainer_.train(
        {.wants_snapshot = [this](std::uint64_t step) { return wants_snapshot(step); },
         .on_snapshot =
             [this](std::uint64_t sequence, const StepReply& reply) {
               checkpointer_->collect(sequence, reply.generation);
             },
         .ends_at = [this](const StepReply& reply) { return ends_at(reply); },
         .on_step = [this](float loss, const StepReply& reply) { made_step(loss, reply); }});
  }

  bool wants_snapshot(std::uint64_t step) {
    if (stop_.take_save_request()) {
      log_info("Asked to save");
      checkpointer_->ask();
    }
    return checkpointer_->wants_snapshot(step);
  }

  void begin_to_lead() {
    if (config().top_k != 0) {
      log_warning(
          "--compress: if a trainer dies, the part of its gradients that it has not pushed yet "
          "is lost, and the weights then differ from those of an undisturbed run");
    }
    task_.emplace(options_.task);
    // connect() may have taken a higher incarnation.
    task_->incarnation = trainer_.client().incarnation();
    // The monitor exists before the checkpointer, whose thread reports to it.
    begin_to_monitor();
    checkpointer_.emplace(
        *task_, options_.checkpoint, config(), trainer_.layout(),
        [monitor = monitor_](const CheckpointRecord& record) { monitor->saved(record); },
        [this] {
          if (lock_) lock_->check();
        });
    if (!options_.summaries.directory.empty()) {
      summaries_.emplace(options_.summaries, config(), trainer_.layout(), dataset(),
                         options_.task.cluster.ps.size());
    }
    // Set although there is none yet: joining then learns what an earlier chief has found.
    if (early_stop_->keeps_best()) {
      trainer_.client().record_best({});
    }
    trainer_.client().lead(to_json(config()), [this] { return provide_state(); });
  }

  // Shared with the trainer's other thread, which receives the metrics of all tasks.
  void begin_to_monitor() {
    RunMonitor::Options options{.progress_fd = options_.progress_fd,
                                .train_dir = options_.checkpoint.train_dir,
                                .fingerprint = trainer_.source().fingerprint()};
    // The page receives the same records as the pipe and the file.
    if (page_ != nullptr) {
      options.also = [page = page_](const std::string& line) { page->take(line); };
    }
    options.take_trace_request = [&stop = stop_] { return stop.take_trace_request(); };
    options.trace = [this](const StepWindow& window) { trainer_.background().trace(window); };
    monitor_ = std::make_shared<RunMonitor>(options_.task, config(), options);
    trainer_.background().collect(
        [monitor = monitor_](std::size_t ps, const std::vector<std::string>& texts) {
          monitor->told(ps, texts);
        });
    trainer_.on_evaluation([this](std::uint64_t step, const math::Evaluation& validation,
                                  const math::Evaluation& test,
                                  bool is_last) { evaluated(step, validation, test, is_last); });
  }

  void evaluated(std::uint64_t step, const math::Evaluation& validation,
                 const math::Evaluation& test, bool is_last) {
    // The monitor comes first: it records the evaluation even if pictures or summaries fail.
    monitor_->evaluated(step, validation, test, is_last);
    write_pictures(step, test, is_last);
    if (is_last) {
      monitor_->ended(
          {.step = step,
           .line = result_line(trainer_.source().name(), test),
           .accuracy = test.has_accuracy() ? std::optional(test.accuracy()) : std::nullopt,
           .weights_sha256 = weights_hash(trainer_.layout(), trainer_.reply().parameters)});
    }
    if (!summaries_) {
      return;
    }
    summaries_->evaluated(step, validation, test, trainer_.parameters(),
                          trainer_.client().gradient(), is_last);
    BuiltInSource* const built_in = trainer_.source().built_in();
    if (is_last && built_in != nullptr && test.classes != 0) {
      // The projector file grows with the points, so their number is bounded.
      const std::size_t points = std::min(kMostProjectorPoints, test.rows);
      std::vector<float> made = built_in->last_inputs(trainer_.reply().parameters, points);
      const std::size_t width = points == 0 ? 0 : made.size() / points;
      summaries_->project(std::move(made), width, test.answers);
    }
  }

  // Drawing them takes a few milliseconds, which would be noticeable after every evaluation of a
  // fast run.
  void write_pictures(std::uint64_t step, const math::Evaluation& test, bool is_last) {
    if (trainer_.source().built_in() == nullptr) {
      return;  // the examples are the program's
    }
    constexpr std::chrono::seconds kBetween{5};
    const auto now = net::Clock::now();
    // The last evaluation gets its pictures in any case.
    if (!is_last && now < next_pictures_) {
      return;
    }
    next_pictures_ = now + kBetween;
    const double time = record_time();
    monitor_->add(wrong_picture_lines(dataset(), test, step, time));
    monitor_->add(
        filter_picture_lines(config().model, trainer_.layout(), trainer_.parameters(), step, time));
  }

  // Records where training begins, or goes on from a state older than the newest one.
  void log_where_it_begins(std::uint64_t step) {
    // To go on from the same step or a later one is no new beginning.
    if (!seen_step_ || step < *seen_step_) {
      const math::ModelSpec& model = config().model;
      monitor_->begins({.config = &config(),
                        .ps = options_.task.cluster.ps.size(),
                        .step = step,
                        .classes = trainer_.source().class_names(),
                        .model = std::string(model.is_program()     ? "program"
                                             : model.layers.empty() ? math::model_name(model.kind)
                                                                    : "layers"),
                        .parameters = trainer_.layout().parameter_count()});
    }
    seen_step_ = step;
  }

  void made_step(float loss, const StepReply& reply) {
    const std::span<const math::ToldNumber> numbers = trainer_.source().numbers();
    monitor_->made(reply.step, static_cast<double>(loss), numbers);
    if (summaries_ && !reply.joined) {  // else the gradient was lost
      summaries_->made({.step = reply.step,
                        .loss = loss,
                        .numbers = numbers,
                        .parameters = reply.parameters,
                        .gradient = trainer_.client().gradient(),
                        .is_last = reply.finished});
    }
  }

  // The ps have reported the previous chief's best evaluation when the run was joined. They receive
  // what this chief finds before a step is made after it, so any chief that leads the run from
  // there on has it, too.
  bool ends_at(const StepReply& reply) {
    PsClient& client = trainer_.client();
    const std::uint64_t step = reply.step;
    log_where_it_begins(step);
    // After a rollback, events of later steps become invalid.
    if (summaries_) {
      summaries_->goes_on_from(step);
    }
    early_stop_->learn(client.best());
    // Before the next step is requested, so that no step is made beyond the stop.
    if (early_stop_->is_due(step)) {
      early_stop_->evaluated(step, trainer_.print_evaluation(step));
      if (early_stop_->stops_at(step)) {
        log_info(early_stop_->why());
      }
    }
    keep_all_known(/*has_result=*/false);
    if (early_stop_->keeps_best() && early_stop_->best() != client.best()) {
      client.record_best(early_stop_->best());
      client.send_best();
    }
    return early_stop_->stops_at(step);
  }

  // Sets what checkpoints contain from now on, including what the ps have reported until now.
  void keep_all_known(bool has_result) {
    const EarlyStopState known = early_stop_->saved_with(
        trainer_.client().best(), has_result ? std::optional(trainer_.reply().step) : std::nullopt);
    if (kept_ != known) {  // not in every step: the other thread reads it
      checkpointer_->keep(known);
      kept_ = known;
    }
  }

  void save_before_the_end() {
    // This task may have failed before it began to lead: it has joined no state yet.
    if (!checkpointer_) {
      return;
    }
    const StepReply& reply = trainer_.reply();
    // Without the best evaluation a resumed run would stop at another step.
    if (early_stop_->may_save(/*has_joined=*/reply.generation != 0)) {
      keep_all_known(reply.finished);
      // max(): the run may have been restored since the last reply.
      checkpointer_->save_now(std::max(reply.generation, trainer_.client().generation()),
                              leader_->deadline());
    }
  }

  // REQUIRES: this trainer has the result.
  [[nodiscard]] bool has_ended_early() {
    return config().stops_early() && trainer_.reply().step < config().train_steps;
  }

  TrainingState provide_state() {
    TrainingState state = state_to_train(*leader_, trainer_, *checkpointer_);
    if (early_stop_->keeps_best()) {
      trainer_.client().record_best(state.early_stop_state.best);
    }
    // Restored as a result, so that no trainer makes another step.
    if (state.has_ended_early()) {
      trainer_.client().provides_result();
    }
    return state;
  }

  // Evaluates and prints the result. If training has diverged, sets how the task is to end: such a
  // run is over, too.
  void conclude() {
    // Requested first: the ps end once they are notified that the run is over.
    const std::string status = trainer_.client().status(0);
    if (has_ended_early()) {
      print_result(early_stop_->why().empty() ? "Stopped by the previous chief"
                                              : early_stop_->why());
    }
    const auto begin = net::Clock::now();
    failure_ = trainer_.print_result_lines();
    if (summaries_ && !failure_) {
      summaries_->ended(/*is_success=*/true);
    }
    // Measured for callers that report training without the final evaluation.
    time_of_evaluation_ = net::Clock::now() - begin;
    log_summary(config(), status);
    // Once the ps are notified that the run is over, no other task repeats the result, so readers
    // get time for it. A reader that pauses for longer gets it when it goes on, if this process
    // still lives.
    static_cast<void>(standard_output().drain(net::Clock::now() + kResultIsTaken));
  }

  void announce_end() {
    if (leader_->was_late()) {
      log_info("the run has finished already");
    }
    // Its threads must not ask ps for snapshots that are about to end.
    checkpointer_.reset();
    trainer_.client().shutdown();
  }

  const TrainerOptions& options_;
  StopSignal& stop_;
  PageThread* page_;
  net::Clock::time_point next_pictures_{};
  std::optional<HeldRunLock> lock_;  // of --train_dir, while this task may write there
  Trainer trainer_;
  std::optional<FailoverThread> failover_;
  std::optional<RunLeader> leader_;
  std::optional<Task> task_;                  // with this chief's final incarnation
  std::shared_ptr<RunMonitor> monitor_;       // set once there is a run to lead
  std::optional<std::uint64_t> seen_step_;    // the newest step that training has gone on from
  std::optional<Checkpointer> checkpointer_;  // set once there is a run to lead
  std::optional<EarlyStop> early_stop_;
  std::optional<Summaries> summaries_;  // if any are requested
  EarlyStopState kept_;                 // the content of checkpoints
  std::optional<Failure> failure_;
  std::chrono::nanoseconds time_of_evaluation_{0};  // of the result
};

}  // namespace

std::chrono::nanoseconds lead(const TrainerOptions& options, StopSignal& stop) {
  // Opened first and closed last: `leading` holds a pointer to it.
  const std::unique_ptr<PageThread> page = open_page(options, stop);
  Leading leading(options, stop, page.get());
  leading.run();
  return leading.time_of_evaluation();
}

int run_chief(const TrainerOptions& options) {
  StopSignal stop;
  lead(options, stop);
  return finish(options.task.on_finish, stop);
}

}  // namespace disttf::roles
