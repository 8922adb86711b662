// A simulated trainer whose gradients its program computes, as
// roles/trainer/shell/program_source.cc has them computed.
#include <algorithm>
#include <cmath>
#include <utility>

#include "run/program/program_facts.h"
#include "tests/sim/trainers.h"

namespace disttf::sim {

using roles::ProgramKind;

void WorkerProcess::set_program(std::unique_ptr<OwnProgram> own, const ProgramOptions& options) {
  own_program_ = std::move(own);
  link_.emplace(world_, *own_program_, options, title(), [this] { wake(*living_); });
}

Routine<void> WorkerProcess::await_program(Fiber& fiber) {
  while (!link_->has_layout()) {
    co_await await_packets(fiber);
  }
  link_->welcome(roles::welcome_text(config_, task_, size_), size_, now());
  if (task_.cluster.is_chief(task_.self) && initial_.empty()) {
    co_await ask_initial(fiber);
  }
}

// As ProgramLink::wait_for_some().
Routine<void> WorkerProcess::await_packets(Fiber& fiber) {
  throw_if_stopped();
  net::FreezeWatch watch(now());
  if (!link_->is_readable() && link_->deadline() > now()) {
    const Time until = std::min(link_->deadline(), now() + std::chrono::seconds(1));
    link_->is_waiting = true;
    watch.expect(until);
    co_await wait(fiber, until);
    link_->is_waiting = false;
  }
  throw_if_stopped();
  if (const Duration missed = watch.missed(now()); missed != Duration::zero()) {
    link_->forgive(missed, now());
  }
  link_->take_some(now());
}

Routine<roles::ProgramAnswer> WorkerProcess::ask_program(Fiber& fiber,
                                                         roles::ProgramRequest request) {
  link_->ask(request, now());
  while (!link_->has_answer()) {
    co_await await_packets(fiber);
  }
  co_return link_->answer();
}

Routine<void> WorkerProcess::compute_by_program(Fiber& fiber, const Checks::Components& components,
                                                Values& gradient) {
  is_torn_ = !read_again(parameters_);
  const roles::Stepper::Batch batch = stepper_.batch();
  ProgramMemory& memory = link_->memory();
  std::ranges::copy(parameters_, memory.parameters.begin());
  memory.components = components;
  static_cast<void>(co_await ask_program(fiber, {.kind = ProgramKind::kCompute,
                                                 .step = batch.step,
                                                 .slot = batch.slot,
                                                 .seed = config_.seed}));
  std::ranges::copy(memory.gradient, gradient.begin());
}

Routine<void> WorkerProcess::ask_initial(Fiber& fiber) {
  std::ranges::fill(link_->memory().gradient, 0.0F);
  static_cast<void>(co_await ask_program(fiber, {.kind = ProgramKind::kGiveInitial}));
  initial_ = link_->memory().gradient;
}

Routine<math::Evaluation> WorkerProcess::evaluate_by_program(Fiber& fiber, std::uint64_t step) {
  std::ranges::copy(parameters_, link_->memory().parameters.begin());
  const roles::ProgramAnswer answer =
      co_await ask_program(fiber, {.kind = ProgramKind::kEvaluate, .step = step});
  math::Evaluation found;
  found.is_told = true;
  for (const auto& [name, value] : answer.numbers) {
    if (name == "loss") {
      found.loss = value;
    } else {
      found.told_accuracy = value;
    }
  }
  const math::Evaluation expected = evaluate(parameters_);
  if (found.loss != expected.loss || found.accuracy() != expected.accuracy()) {
    world_.violate(name() + " uses an evaluation of its program that is not of its parameters " +
                   "(invariant 23)");
  }
  co_return found;
}

// As ProgramLink::end().
Routine<void> WorkerProcess::end_program(Fiber& fiber) {
  if (!link_) {
    co_return;
  }
  std::ranges::copy(parameters_, link_->memory().parameters.begin());
  try {
    while (link_->is_readable()) {
      link_->take_some(now());
    }
    link_->end(reply_.step);
    while (!link_->is_released()) {
      co_await await_packets(fiber);
    }
  } catch (const roles::Failure& failure) {
    note(std::string("the program was not told the end of the run: ") + failure.what());
  }
}

}  // namespace disttf::sim
