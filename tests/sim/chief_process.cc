#include "tests/sim/chief_process.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace disttf::sim {

using roles::Failure;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr milliseconds kFirstViews{500};
constexpr seconds kFailoverFarewell{3};
constexpr seconds kLastSave{60};
constexpr seconds kSaveOnSignal{4};
constexpr milliseconds kSaveAgain{20};
constexpr milliseconds kLook{5};

}  // namespace

ChiefProcess::ChiefProcess(World& world, Network& network, Checks& checks,
                           const roles::RunConfig& config, const Pace& pace,
                           const roles::CheckpointOptions& checkpoint, SimulatedDisk* disk,
                           roles::Task task, std::size_t node, std::size_t size, OnEnd on_end)
    : WorkerProcess(world, network, checks, config, pace, std::move(task), node, size,
                    std::move(on_end)),
      checkpoint_(checkpoint),
      disk_(disk) {}

void ChiefProcess::start() {
  prepare();
  start_snapshots();
  if (config_.ps_replicas > 1) {
    for (roles::HostNumber number = 0; number < 2 * session_.ranges(); ++number) {
      hosts_.push_back(std::make_unique<Host>());
      serving_.push_back(&spawn([this, number](Fiber& fiber) { return serve(fiber, number); }));
    }
    views_.emplace(task_, world_.draw(Draw::kBackoff, task_.incarnation, 1), now());
    views_time_ = &spawn([this](Fiber& fiber) { return keep_views_time(fiber); });
    act_on_views();
  }
  WorkerProcess::start();
}

Routine<void> ChiefProcess::live(Fiber& fiber) {
  co_await sleep(fiber, milliseconds(pace_.load_ms));
  if (views_) {
    const Time deadline = now() + kFirstViews;
    while (now() < deadline && !views_->all_have_views()) {
      co_await sleep(fiber, kLook);
    }
  }
  bool is_over = co_await connect(fiber);
  if (!is_over) {
    session_.lead();
    std::optional<Failure> failure;
    try {
      bool is_settled = false;
      while (!is_settled) {
        co_await train(fiber);
        is_settled = co_await settle(fiber);
      }
    } catch (const RunOver&) {
      is_over = true;
    } catch (const Failure& failed) {
      failure = failed;
    }
    if (failure) {
      if (disk_ != nullptr && (failure->exit_code() == roles::kTerminated ||
                               failure->exit_code() == roles::kLostPeers)) {
        co_await save_now(fiber, std::max(reply_.generation, session_.generation()), kSaveOnSignal);
      }
      throw Failure(*failure);
    }
    if (!is_over) {
      print_result(/*is_chief=*/true);
    }
  }
  if (is_over) {
    world_.mark(Mark::kChiefLostAtEnd);
  }
  co_await shut_down(fiber);
  if (views_) {
    views_->finish();
    act_on_views();
    const Time deadline = now() + kFailoverFarewell;
    while (now() < deadline && !views_->has_ended()) {
      co_await sleep(fiber, kLook);
    }
  }
  exit(roles::kDone, "has led the run");
}

Routine<void> ChiefProcess::shut_down(Fiber& fiber) {
  session_.begin_shutdown(begin_now());
  bool is_stopped = false;
  try {
    co_await run(fiber);
  } catch (const Failure&) {  // a signal, after the result: nobody is waited for any more
    is_stopped = true;
  }
  if (is_stopped) {
    session_.tell_the_end();
    co_await perform(fiber);
  }
}

// False: another chief has set the ps to a state from which there are steps to be made still.
Routine<bool> ChiefProcess::await_others(Fiber& fiber) {
  Values unused(size_);  // the result is not to be lost for a state that may be an earlier one
  session_.begin_await_others(begin_now());
  const roles::StepResult reply = co_await run_step(fiber, unused);
  bool others_are_done = !reply.joined;
  if (others_are_done && !config_.every_gradient_counts()) {
    session_.begin_peek(begin_now());
    const roles::StepResult newest = co_await run_step(fiber, parameters_);
    others_are_done = newest.finished || !newest.joined;
  }
  if (!others_are_done) {
    stepper_.set_back();
    reply_.finished = false;
  }
  co_return others_are_done;
}

// False: the result is to be made again.
Routine<bool> ChiefProcess::settle(Fiber& fiber) {
  const Time deadline = now() + kLastSave;
  while (true) {
    const bool others_are_done = co_await await_others(fiber);
    if (!others_are_done || disk_ == nullptr) {
      co_return others_are_done;
    }
    const bool is_saved = co_await save_final(fiber, deadline);
    if (is_saved || now() + kSaveAgain >= deadline) {
      co_return true;
    }
    throw_if_stopped();
    co_await sleep(fiber, kSaveAgain);
    throw_if_stopped();
  }
}

}  // namespace disttf::sim
