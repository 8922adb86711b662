#include "tests/sim/directory_evaluator.h"

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

namespace disttf::sim {

namespace {

constexpr std::chrono::milliseconds kLookAtFiles{200};

}  // namespace

DirectoryEvaluatorProcess::DirectoryEvaluatorProcess(World& world, Network& network, Checks& checks,
                                                     SimulatedDisk& disk,
                                                     const roles::RunConfig& config, Duration every,
                                                     std::function<bool()> is_written,
                                                     roles::Task task, std::size_t node,
                                                     OnEnd on_end)
    : ScoringProcess(world, network, std::move(task), node, std::move(on_end)),
      checks_(checks),
      disk_(disk),
      config_(config),
      every_(every),
      is_written_(std::move(is_written)) {}

void DirectoryEvaluatorProcess::start() {
  known_since_ = world_.now();
  last_change_ = now();
  spawn([this](Fiber& fiber) { return live(fiber); });
}

void DirectoryEvaluatorProcess::terminate() { exit(roles::kTerminated, "SIGTERM"); }

Routine<void> DirectoryEvaluatorProcess::live(Fiber& fiber) {
  while (!has_result_) {
    std::vector<roles::CheckpointName> names = look();
    if (is_written_()) {
      last_change_ = now();
    }
    const bool is_new = !names.empty() && names.front() != seen_;
    // The result is scored at once.
    if (is_new && (now() >= next_ || !is_written_())) {
      co_await score_newest(fiber, std::move(names));
    } else if (!is_new && now() - last_change_ > task_.timeouts.peer) {
      throw roles::Failure(roles::kLostPeers, "nothing in the directory has changed");
    }
    if (!has_result_) {
      co_await sleep(fiber, kLookAtFiles);
    }
  }
  exit(roles::kDone, "has scored the result");
}

std::vector<roles::CheckpointName> DirectoryEvaluatorProcess::look() {
  try {
    return disk_.names();
  } catch (const std::system_error& error) {
    if (!roles::is_away(error.code())) {
      throw;
    }
    return {};
  }
}

Routine<void> DirectoryEvaluatorProcess::score_newest(Fiber& fiber,
                                                      std::vector<roles::CheckpointName> names) {
  const std::optional<roles::CheckpointName> before = std::exchange(seen_, names.front());
  for (const roles::CheckpointName& name : names) {
    if (name == before) {
      co_return;
    }
    const std::optional<roles::TrainingState> state = co_await read(fiber, name);
    if (state) {
      next_ = now() + every_;
      has_result_ = state->step >= config_.train_steps || state->has_ended_early();
      world_.mark(has_result_ ? Mark::kResultScored : Mark::kCheckpointScored);
      checks_.snapshot_collected(this->name(), state->step, state->parameters.span());
      co_return;
    }
  }
}

Routine<std::optional<roles::TrainingState>> DirectoryEvaluatorProcess::read(
    Fiber& fiber, roles::CheckpointName name) {
  std::optional<roles::TrainingState> state;
  try {
    const roles::CheckpointReader reader = disk_.open(name);
    co_await sleep(fiber, disk_time());
    state = reader.read();
    disk_.was_read(this->name(), *state);
  } catch (const roles::DamagedCheckpoint&) {
    disk_.was_refused(this->name(), name);
  } catch (const std::system_error&) {
    disk_.was_refused(this->name(), name);
  }
  if (!state) {
    world_.mark(Mark::kCheckpointGone);
  }
  co_return state;
}

Duration DirectoryEvaluatorProcess::disk_time() {
  const std::uint64_t bits = world_.draw(Draw::kEvaluator, task_.incarnation, ++disk_uses_);
  const std::chrono::microseconds time(100 + bits % 20'000);
  return (bits >> 32U) % 8 == 0 ? 50 * time : time;
}

}  // namespace disttf::sim
