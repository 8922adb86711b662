#include "tests/sim/chief_process.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace disttf::sim {

using roles::Failure;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kFirstViews{500};
constexpr milliseconds kLook{5};

}  // namespace

ChiefProcess::ChiefProcess(World& world, Network& network, Checks& checks,
                           const roles::RunConfig& config, const Pace& pace,
                           const roles::CheckpointOptions& checkpoint, SimulatedDisk* disk,
                           roles::Task task, std::size_t node, std::size_t size, OnEnd on_end)
    : WorkerProcess(world, network, checks, config, pace, std::move(task), node, size,
                    std::move(on_end)),
      checkpoint_(checkpoint),
      disk_(disk),
      leader_({.saves = disk != nullptr,
               .every_gradient_counts = config.every_gradient_counts(),
               .replicated = config.ps_replicas > 1}),
      early_stop_({.train_steps = config.train_steps,
                   .eval_every = config.eval_every,
                   .target_accuracy = config.target_accuracy,
                   .patience = config.patience}) {}

void ChiefProcess::start() {
  if (disk_ != nullptr) {
    checkpoints_.emplace(disk_->open());
  }
  prepare();
  start_snapshots();
  if (config_.ps_replicas > 1) {
    for (roles::HostNumber number = 0; number < 2 * session_.ranges(); ++number) {
      hosts_.push_back(std::make_unique<Host>());
      serving_.push_back(&spawn([this, number](Fiber& fiber) { return serve(fiber, number); }));
    }
    begin_views();
    views_time_ = &spawn([this](Fiber& fiber) { return keep_views_time(fiber); });
    act_on_views();
  }
  WorkerProcess::start();
}

Routine<void> ChiefProcess::live(Fiber& fiber) {
  co_await sleep(fiber, milliseconds(pace_.load_ms));
  if (link_) {
    co_await await_program(fiber);
  }
  if (views_) {
    const auto is_ready = [this] {
      return views_->all_have_views() || views_->replaced_by() != 0 || views_->is_run_over();
    };
    for (int attempt = 0; attempt < 2; ++attempt) {
      const Time deadline = now() + kFirstViews;
      while (now() < deadline && !is_ready()) {
        co_await sleep(fiber, kLook);
      }
      throw_if_stopped();
      if (views_->replaced_by() == 0 || attempt != 0) {
        break;
      }
      take_incarnation_above(views_->replaced_by());
    }
    if (views_->is_run_over()) {
      leader_.run_over();
    }
  }
  std::optional<Failure> failure;
  while (leader_.next() != roles::RunLeader::Action::kEnd) {
    try {
      co_await take_action(fiber);
    } catch (const RunOver&) {
      leader_.run_over();
    } catch (const Failure& failed) {
      leader_.failed(failed.exit_code(), now());
      failure.emplace(failed);
    }
    leader_.notes().drain([this](const roles::Note& line) { note(line.text); });
  }
  if (failure) {
    throw Failure(*failure);
  }
  exit(roles::kDone, "has led the run");
}

Routine<void> ChiefProcess::take_action(Fiber& fiber) {
  using Action = roles::RunLeader::Action;
  switch (leader_.next()) {
    case Action::kConnect: {
      const bool is_over = co_await connect(fiber);
      if (!is_over) {
        if (early_stop_.keeps_best()) {
          session_.record_best({});
        }
        session_.lead();
        is_settled_ = true;
        if (views_) {
          act_on_views();
        }
      }
      leader_.connected(is_over);
      break;
    }
    case Action::kTrain:
      co_await train(fiber);
      leader_.trained();
      break;
    case Action::kAwaitOthers: {
      const bool are_done = co_await await_others(fiber);
      leader_.others_done(are_done, now());
      break;
    }
    case Action::kPeek: {
      const bool are_done = co_await peek(fiber);
      leader_.peeked(are_done, now());
      break;
    }
    case Action::kSave: {
      keep_all_known(/*has_result=*/true);
      const bool is_done = co_await save_final(fiber, leader_.deadline());
      leader_.saved(is_done, now());
      break;
    }
    case Action::kPause:
      while (now() < leader_.deadline() && !stop_requested_) {
        co_await wait(fiber, leader_.deadline());
      }
      throw_if_stopped();
      leader_.paused();
      break;
    case Action::kConclude:
      if (link_) {
        static_cast<void>(co_await evaluate_by_program(fiber, reply_.step));
      }
      print_result(/*is_chief=*/true);
      co_await end_program(fiber);
      leader_.concluded();
      break;
    case Action::kSaveAndFail:
      if (early_stop_.may_save(/*has_joined=*/reply_.generation != 0)) {
        keep_all_known(reply_.finished);
        co_await save_now(fiber, std::max(reply_.generation, session_.generation()),
                          leader_.deadline());
      }
      leader_.ended();
      break;
    case Action::kAnnounceEnd:
      if (leader_.was_late()) {
        world_.mark(Mark::kChiefLostAtEnd);
      }
      co_await shut_down(fiber);
      leader_.told(now());
      break;
    case Action::kEndViews:
      views_->finish();
      act_on_views();
      while (now() < leader_.deadline() && !views_->has_ended()) {
        co_await sleep(fiber, kLook);
      }
      leader_.ended();
      break;
    case Action::kEnd:
      break;
  }
}

void ChiefProcess::keep_all_known(bool has_result) {
  early_stop_state_ = early_stop_.saved_with(
      session_.best(), has_result ? std::optional(reply_.step) : std::nullopt);
}

Routine<bool> ChiefProcess::ends_here(Fiber& fiber) {
  const std::uint64_t step = reply_.step;
  early_stop_.learn(session_.best());
  if (early_stop_.is_due(step)) {
    if (link_) {
      const math::Evaluation found = co_await evaluate_by_program(fiber, step);
      early_stop_.evaluated(step, found);
    } else {
      early_stop_.evaluated(step, evaluate(parameters_));
    }
    if (early_stop_.stops_at(step)) {
      note(early_stop_.why());
    }
  }
  keep_all_known(/*has_result=*/false);
  if (early_stop_.keeps_best() && early_stop_.best() != session_.best()) {
    session_.record_best(early_stop_.best());
    session_.begin_send_best(begin_now());
    co_await run(fiber);
  }
  co_return early_stop_.stops_at(step);
}

Routine<void> ChiefProcess::shut_down(Fiber& fiber) {
  session_.begin_shutdown(begin_now());
  bool is_stopped = false;
  try {
    co_await run(fiber);
  } catch (const Failure&) {  // a signal after the result: the chief stops waiting
    is_stopped = true;
  }
  if (is_stopped) {
    session_.announce_end();
    co_await perform(fiber);
  }
}

// Returns false if another chief has set the ps to a state from which steps remain.
Routine<bool> ChiefProcess::await_others(Fiber& fiber) {
  // Separate memory: the ps may send an earlier state, which must not overwrite the result.
  Values unused(size_);
  leave_group();
  session_.begin_await_others(begin_now());
  const roles::StepResult reply = co_await run_step(fiber, unused);
  if (reply.joined) {
    roll_back();
  }
  co_return !reply.joined;
}

Routine<bool> ChiefProcess::peek(Fiber& fiber) {
  Values newest(size_);
  leave_group();
  session_.begin_peek(begin_now());
  const roles::StepResult reply = co_await run_step(fiber, newest);
  parameters_ = newest;
  const bool are_done = reply.finished || !reply.joined;
  if (!are_done) {
    roll_back();
  }
  co_return are_done;
}

void ChiefProcess::roll_back() {
  stepper_.roll_back();
  reply_.finished = false;
}

}  // namespace disttf::sim
