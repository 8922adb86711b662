#include "tests/sim/trainers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "net/wire/messages.h"

namespace disttf::sim {

using net::FrameKind;
using roles::Failure;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kDialAttempt{2000};

}  // namespace

WorkerProcess::WorkerProcess(World& world, Network& network, Checks& checks,
                             const roles::RunConfig& config, const Pace& pace, roles::Task task,
                             std::size_t node, std::size_t size, OnEnd on_end)
    : TrainerProcess(world, network, checks, config, std::move(task), node, size,
                     std::move(on_end)),
      pace_(pace),
      rank_(task_.cluster.rank_of(task_.self)),
      stepper_({.rank = rank_,
                .sync_replicas = config.sync_replicas,
                .fully_synchronous = config.every_gradient_counts(),
                .micro_batches = config.micro_batches}),
      next_parameters_(config.elastic() ? size : 0) {}

void WorkerProcess::start() {
  for (std::size_t index = 0; index < session_.ranges(); ++index) {
    beats_.push_back(std::make_unique<Beat>());
    beating_.push_back(&spawn([this, index](Fiber& fiber) { return beat(fiber, index); }));
  }
  living_ = &spawn([this](Fiber& fiber) { return live(fiber); });
}

void WorkerProcess::terminate() {
  stop_requested_ = true;
  wake(*living_);
}

void WorkerProcess::record_host() {
  if (is_alive()) {
    wake(*living_);
  }
}

// --------------------------------------------------------------------------------- the background

Routine<void> WorkerProcess::beat(Fiber& fiber, std::size_t index) {
  Beat& beat = *beats_[index];
  net::Generation said = 0;
  std::uint64_t said_as = incarnation_;
  Time next = now();
  while (true) {
    const net::Generation generation = generation_;
    if (std::exchange(said_as, incarnation_) != incarnation_) {
      close(beat.channel);
    }
    const auto send_beat = [&] {
      if (beat.channel.is_open && beat.is_welcomed) {
        network_.send(beat.channel.id, *this, net::Heartbeat{.generation = generation}.to_header());
      }
    };
    send_beat();
    if (generation != said) {
      close(beat.channel);
    }
    said = generation;
    if (!beat.channel.is_open) {
      beat.is_welcomed = false;
      const net::TaskId ps{.job = net::Job::kPs, .index = index};
      FiberProcess::open(beat.channel, fiber, index,
                         {.cluster = {},
                          .from = task_.self,
                          .to = ps,
                          .purpose = net::ChannelPurpose::kControl,
                          .incarnation = incarnation_});
      const Time deadline = now() + kDialAttempt;
      while (beat.channel.is_open && !beat.channel.has_frame() && now() < deadline) {
        co_await wait(fiber, deadline);
      }
      if (beat.channel.has_frame() && take(beat.channel).header.kind == FrameKind::kWelcome) {
        beat.is_welcomed = true;
        send_beat();
      } else {
        close(beat.channel);
      }
    }
    next = now() + roles::kHeartbeatInterval;
    while (generation == generation_ && said_as == incarnation_ && now() < next) {
      while (beat.channel.has_frame()) {
        if (net::is_bodiless<net::Fenced>(take(beat.channel).header)) {
          replaced_.emplace_back(index, generation);
          wake(*living_);
        }
      }
      co_await wait(fiber, next);
    }
  }
}

void WorkerProcess::set_generation(net::Generation generation) {
  if (std::exchange(generation_, generation) != generation) {
    for (Fiber* const fiber_of_beat : beating_) {
      wake(*fiber_of_beat);
    }
  }
}

void WorkerProcess::took_incarnation() {
  for (Fiber* const fiber_of_beat : beating_) {
    wake(*fiber_of_beat);
  }
}

// -------------------------------------------------------------------------------------- training

// Computes the gradient of the parameters, which takes virtual time.
Routine<void> WorkerProcess::compute(Fiber& fiber, Checks::Components components) {
  if (link_) {
    const std::shared_ptr<Values> place = place_of_gradient();
    std::ranges::fill(*place, kHalfComputed);
    checks_.rows_are_taken(name(), stepper_.batch(), reply_.step, rank_);
    co_await compute_by_program(fiber, components, *place);
    gradient_ = place;
    stepper_.computed();
    co_return;
  }
  const std::uint64_t bits = world_.draw(Draw::kPace, task_.incarnation, ++computed_);
  std::uint64_t us = pace_.compute_us / 2 + (bits >> 32U) % (pace_.compute_us + 1);
  if (pace_.slow_one_in != 0 && (bits & 0xFFFFU) % pace_.slow_one_in == 0) {
    us += 20'000'000;
  }
  const std::shared_ptr<Values> gradient = place_of_gradient();
  std::ranges::fill(*gradient, kHalfComputed);  // a ps that reads these values breaks an invariant
  co_await sleep(fiber, std::chrono::microseconds(us));
  is_torn_ = !read_again(parameters_);
  const roles::Stepper::Batch& batch = stepper_.batch();
  checks_.rows_are_taken(name(), batch, reply_.step, rank_);
  checks_.fill_gradient(parameters_, batch.step, batch.slot, components, *gradient, config_.seed);
  gradient_ = gradient;
  stepper_.computed();
}

std::shared_ptr<Values> WorkerProcess::place_of_gradient() {
  is_shared_ = pushed_ < pace_.gradients_in_memory;
  if (!is_shared_) {
    return std::make_shared<Values>(size_);
  }
  if (std::exchange(was_opened_again_, false)) {
    memory_.clear();
  }
  memory_.resize(pace_.gradients_in_memory);
  std::shared_ptr<Values>& place = memory_[pushed_];
  if (!place) {
    place = std::make_shared<Values>(size_);
  }
  return place;
}

Routine<bool> WorkerProcess::connect(Fiber& fiber) {
  session_.begin_connect(begin_now());
  try {
    co_await run(fiber);
  } catch (const RunOver&) {
  }
  co_return session_.is_over();
}

Routine<void> WorkerProcess::train(Fiber& fiber) {
  leave_group();
  session_.begin_pull(begin_now());
  reply_ = co_await run_step(fiber, parameters_);
  pushed_ = 0;
  stepper_.replied(reply_);
  while (stepper_.next() != roles::Stepper::Action::kLeave) {
    const bool ends = co_await ends_here(fiber);
    if (ends) {
      co_await end_here(fiber);
    } else {
      co_await take_step(fiber);
    }
  }
}

Routine<bool> WorkerProcess::ends_here(Fiber& /*fiber*/) { co_return false; }

Routine<void> WorkerProcess::end_here(Fiber& fiber) {
  throw_if_stopped();
  Values newest(size_);
  std::ranges::fill(*place_of_gradient(), kHalfComputed);  // the next gradient is written there
  leave_group();
  session_.begin_peek(begin_now());
  reply_ = co_await run_step(fiber, newest);
  parameters_ = newest;
  stepper_.peeked(reply_);
}

Routine<void> WorkerProcess::take_step(Fiber& fiber) {
  throw_if_stopped();
  const std::uint64_t sequence = stepper_.sequence();
  const bool keep_snapshot = wants_snapshot(reply_.step + 1);
  if (config_.elastic()) {
    co_await take_elastic_step(fiber, keep_snapshot);
  } else {
    co_await push_pull(fiber, keep_snapshot);
  }
  if (keep_snapshot && !reply_.joined) {
    took_snapshot(sequence);
  }
  stepper_.replied(reply_);
}

Routine<void> WorkerProcess::push_pull(Fiber& fiber, bool keep_snapshot) {
  Checks::Places places;
  for (std::size_t index = 0; index < session_.ranges(); ++index) {
    places.emplace_back(state_of(index), session_.range(index).step());
  }
  const Checks::Components components = checks_.take_components(rank_, places);
  co_await compute(fiber, components);
  const std::uint64_t sequence = stepper_.sequence();
  session_.begin_push_pull(sequence, keep_snapshot, begin_now());
  may_stay_ = pace_.gradients_in_memory != 0;
  reply_ = co_await run_step(fiber, parameters_);
  way_is_by_leader_ = false;
  for (std::size_t index = 0; index < components.size() && !reply_.joined; ++index) {
    // Restored to another state since: the push was lost with its own.
    if (state_of(index) != places[index].first) {
      continue;
    }
    const PushName push{.incarnation = incarnation_, .sequence = sequence};
    if (session_.was_dropped(index)) {
      checks_.push_dropped(index, state_of(index), components[index], push);
    } else if (!config_.sync_replicas || session_.range(index).step() > places[index].second) {
      // Otherwise the run has ended before the step was made.
      checks_.push_acknowledged(index, state_of(index), components[index], push);
    }
  }
}

Routine<void> WorkerProcess::take_elastic_step(Fiber& fiber, bool keep_snapshot) {
  while (true) {
    while (stepper_.next() == roles::Stepper::Action::kCompute) {
      co_await compute(fiber, {});
      session_.push(stepper_.batch().slot);
      co_await perform(fiber);
      ++pushed_;
      stepper_.pushed();
    }
    const bool goes_on = session_.outcome() == roles::RunSession::Outcome::kNeedsWork;
    session_.begin_await_step(stepper_.sequence(), keep_snapshot,
                              goes_on ? awake_.now() : begin_now());
    may_stay_ = pace_.gradients_in_memory != 0;
    const roles::StepResult next = co_await run_step(fiber, next_parameters_);
    if (session_.outcome() != roles::RunSession::Outcome::kNeedsWork) {
      reply_ = next;
      break;
    }
    stepper_.needs(session_.work());
  }
  std::swap(parameters_, next_parameters_);
  pushed_ = 0;
}

Routine<bool> WorkerProcess::leave(Fiber& fiber) {
  leave_group();
  // While it waits it may join ps that came anew, which hold another state or none.
  std::vector<StateName> states = states_now();
  session_.begin_await_end(begin_now());
  try {
    co_await run(fiber);
  } catch (const Failure&) {
    if (!session_.was_released()) {
      throw;
    }  // after the run is over, a signal no longer matters
  }
  const bool released = session_.was_released();
  if (stepper_.left(released)) {
    kept_result_ = parameters_;
    kept_states_ = std::move(states);
  }
  co_return released;
}

Routine<bool> WorkerProcess::has_result(Fiber& fiber) {
  stepper_.run_over();
  if (stepper_.next() == roles::Stepper::Action::kFetchFinal) {
    session_.begin_fetch_final(begin_now());
    std::optional<std::uint64_t> step;
    try {
      static_cast<void>(co_await run_step(fiber, parameters_));
      step = session_.final_step();
    } catch (const Failure&) {
    }
    stepper_.fetched(step);
  }
  if (stepper_.result() == roles::Stepper::Result::kKept) {
    Values newest(size_);
    session_.begin_fetch_final(begin_now());
    try {
      static_cast<void>(co_await run_step(fiber, newest));
    } catch (const Failure& failure) {
      if (failure.exit_code() == roles::kUsage) {  // the run has another configuration
        throw;
      }
    }
    parameters_ = kept_result_;
  }
  reply_ = stepper_.reply();
  co_return stepper_.result() != roles::Stepper::Result::kNone;
}

std::vector<StateName> WorkerProcess::states_now() const {
  std::vector<StateName> states;
  for (std::size_t index = 0; index < session_.ranges(); ++index) {
    states.push_back(state_of(index));
  }
  return states;
}

void WorkerProcess::print_result(bool is_chief) {
  const bool is_kept = stepper_.result() == roles::Stepper::Result::kKept;
  checks_.result(name(), is_chief, reply_.step, is_kept ? kept_states_ : states_now(), parameters_);
}

Routine<void> WorkerProcess::live(Fiber& fiber) {
  co_await sleep(fiber, milliseconds(pace_.load_ms));
  if (link_) {
    co_await await_program(fiber);
  }
  bool is_late = co_await connect(fiber);
  if (!is_late) {
    try {
      session_.begin_get_config(begin_now());
      co_await run(fiber);
      prepare();
    } catch (const RunOver&) {
      is_late = true;
    }
  }
  if (is_late) {
    world_.mark(Mark::kLateTrainerTold);
    exit(roles::kDone, "the run has finished already");
    co_return;
  }
  try {
    bool released = false;
    while (!released) {
      co_await train(fiber);
      released = co_await leave(fiber);
    }
  } catch (const RunOver&) {
  }
  const bool has = co_await has_result(fiber);
  if (has) {
    print_result(/*is_chief=*/false);
    co_await end_program(fiber);
  }
  exit(roles::kDone, has ? "printed the result" : "final parameters lost with a parameter server");
}

}  // namespace disttf::sim
