#include "tests/sim/launcher.h"

#include <algorithm>
#include <random>
#include <utility>
#include <variant>

#include "run/outcome.h"

namespace disttf::sim {
namespace {

using roles::RestartPolicy;

enum LaunchEvent : std::uint32_t { kTime = 1, kSignal };

// The latency of a signal, and of the notice that a process has ended.
constexpr std::chrono::microseconds kSoon{50};

}  // namespace

SimulatedLauncher::SimulatedLauncher(World& world, LaunchedTasks& tasks, const Options& options)
    : world_(world),
      tasks_(tasks),
      options_(options),
      supervisor_(options.restarts, options.saves,
                  std::mt19937_64(world.draw(Draw::kRestart, 0, 1'000'000))) {
  for (std::size_t node = 0; node < options.ps + options.trainers; ++node) {
    const bool is_ps = node < options.ps;
    supervisor_.add(
        is_ps ? "ps " + std::to_string(node) : "worker " + std::to_string(node - options.ps),
        is_ps                ? RestartPolicy::Part::kPs
        : node == options.ps ? RestartPolicy::Part::kChief
                             : RestartPolicy::Part::kWorker);
  }
}

void SimulatedLauncher::started(std::size_t node) {
  supervisor_.started(node, now());
  act();
}

void SimulatedLauncher::ended(std::size_t node, const roles::Ending& ending) {
  const bool is_failure = ending.signal != 0 || ending.exit_code != roles::kDone;
  const bool is_planned = all_end_ || supervisor_.tasks()[node].asked != roles::Asked::kNothing;
  if (is_failure && !is_planned && supervisor_.may_start()) {
    ++failures_;
  }
  supervisor_.ended(node, ending, now());
  supervisor_.reaped(now());
  check();
  act();
}

// Checks that a launch fails exactly when its restart budget is spent.
void SimulatedLauncher::check() {
  if (!may_fail_ && has_failed() && failures_ != options_.restarts.max_restarts + 1) {
    world_.violate("the launch gives up after " + std::to_string(failures_) + " failures, with " +
                   std::to_string(options_.restarts.max_restarts) + " restarts to give");
  }
  if (!has_decided() && failures_ > options_.restarts.max_restarts) {
    world_.violate("the launch goes on after " + std::to_string(failures_) + " failures, with " +
                   std::to_string(options_.restarts.max_restarts) + " restarts to give");
  }
}

bool SimulatedLauncher::may_be_asked(std::size_t node) const {
  const roles::SupervisedTask& task = supervisor_.tasks()[node];
  return !has_decided() && !all_end_ && (task.lives || task.waits);
}

void SimulatedLauncher::restart(std::size_t node) {
  if (may_be_asked(node)) {
    supervisor_.restart(node, now());
    act();
  }
}

void SimulatedLauncher::replace(std::size_t node) {
  if (may_be_asked(node)) {
    supervisor_.replace(node, now());
    act();
  }
}

void SimulatedLauncher::restart_all() {
  if (!has_decided() && !std::exchange(all_end_, true)) {
    supervisor_.restart_all(now());
    act();
  }
}

void SimulatedLauncher::act() {
  struct Apply {
    SimulatedLauncher& launcher;
    void operator()(const roles::StartTask& effect) const {
      launcher.world_.mark(Mark::kLaunchedAgain);
      launcher.tasks_.start_task(effect.task);
    }
    void operator()(const roles::SignalTask& effect) const {
      launcher.world_.schedule(launcher.now() + kSoon, launcher, kSignal, effect.task,
                               static_cast<std::uint64_t>(effect.signal));
    }
    // Nothing to do: addresses are nodes.
    void operator()(const roles::MoveTask& /*effect*/) const {}
    void operator()(const roles::TaskChanged& /*effect*/) const {}
    void operator()(const roles::SayLine& line) const {
      launcher.world_.log("launch: " + line.text);
    }
    void operator()(const roles::AllEnded& /*effect*/) const {
      launcher.all_end_ = false;
      for (std::size_t node = 0;
           !launcher.has_decided() && node < launcher.supervisor_.tasks().size(); ++node) {
        launcher.tasks_.start_task(node);
      }
    }
    void operator()(const roles::AllGone& /*effect*/) const {
      if (!launcher.has_decided()) {
        launcher.world_.violate("the launch has no task, and none is to be started");
      }
      if (launcher.has_failed()) {
        launcher.world_.mark(Mark::kLaunchGivesUp);
      }
      launcher.has_ended_ = true;
    }
  };
  supervisor_.effects().drain(Apply{*this});
  const Time next = supervisor_.deadline();
  if (next != Time::max() && (armed_ <= now() || next < armed_)) {
    armed_ = std::max(next, now());
    world_.schedule(next, *this, kTime);
  }
}

void SimulatedLauncher::on_event(std::uint32_t what, std::uint64_t a, std::uint64_t b) {
  if (what == kSignal) {
    tasks_.signal_task(a, static_cast<int>(b));
    return;
  }
  if (now() >= armed_) {
    armed_ = Time{};
  }
  if (now() >= supervisor_.deadline()) {
    supervisor_.time(now());
  }
  act();
}

}  // namespace disttf::sim
