#include "tests/sim/trainers.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace disttf::sim {

using net::FrameKind;
using roles::Failure;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr milliseconds kDialAttempt{2000};
constexpr milliseconds kFirstViews{500};
constexpr seconds kFailoverFarewell{3};
constexpr seconds kLastSave{60};
constexpr milliseconds kSaveAgain{20};
constexpr milliseconds kLook{5};

}  // namespace

WorkerProcess::WorkerProcess(World& world, Network& network, Checks& checks,
                             const roles::RunConfig& config, const Pace& pace, roles::Task task,
                             std::size_t node, std::size_t size, OnEnd on_end)
    : TrainerProcess(world, network, checks, config, std::move(task), node, size,
                     std::move(on_end)),
      pace_(pace),
      rank_(task_.cluster.rank_of(task_.self)),
      stepper_({.train_steps = config.train_steps,
                .rank = rank_,
                .sync_replicas = config.sync_replicas,
                .strict = config.every_gradient_counts(),
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
  told_to_stop_ = true;
  wake(*living_);
}

// --------------------------------------------------------------------------------- the background

Routine<void> WorkerProcess::beat(Fiber& fiber, std::size_t index) {
  Beat& beat = *beats_[index];
  std::uint32_t said = 0;
  Time next = now();
  while (true) {
    const std::uint32_t generation = generation_;
    const auto send_beat = [&] {
      if (beat.channel.is_open && beat.is_welcomed) {
        network_.send(beat.channel.id, *this,
                      {.kind = FrameKind::kHeartbeat, .generation = generation});
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
                          .incarnation = task_.incarnation});
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
    while (generation == generation_ && now() < next) {
      while (beat.channel.has_frame()) {
        static_cast<void>(take(beat.channel));
      }
      co_await wait(fiber, next);
    }
  }
}

void WorkerProcess::set_generation(std::uint32_t generation) {
  if (std::exchange(generation_, generation) != generation) {
    for (Fiber* const fiber_of_beat : beating_) {
      wake(*fiber_of_beat);
    }
  }
}

// -------------------------------------------------------------------------------------- training

// The gradient of the parameters, and the time that it takes.
Routine<void> WorkerProcess::compute(Fiber& fiber, Checks::Components components) {
  const std::uint64_t bits = world_.draw(Draw::kPace, task_.incarnation, ++computed_);
  std::uint64_t us = pace_.compute_us / 2 + (bits >> 32U) % (pace_.compute_us + 1);
  if (pace_.slow_one_in != 0 && (bits & 0xFFFFU) % pace_.slow_one_in == 0) {
    us += 20'000'000;
  }
  co_await sleep(fiber, std::chrono::microseconds(us));
  const auto gradient = std::make_shared<Values>(size_);
  const roles::Stepper::Batch& batch = stepper_.batch();
  checks_.fill_gradient(parameters_, batch.step, batch.slot, components, *gradient);
  gradient_ = gradient;
  stepper_.computed();
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
  session_.begin_pull(begin_now());
  reply_ = co_await run_step(fiber, parameters_);
  stepper_.replied(reply_);
  while (stepper_.next() != roles::Stepper::Action::kLeave) {
    co_await take_step(fiber);
  }
}

Routine<void> WorkerProcess::take_step(Fiber& fiber) {
  throw_if_stopped();
  const std::uint64_t sequence = stepper_.sequence();
  const bool cut = wants_cut(reply_.step + 1);
  if (config_.elastic()) {
    co_await take_elastic_step(fiber, cut);
  } else {
    co_await push_pull(fiber, cut);
  }
  if (cut && !reply_.joined) {
    took_cut(sequence);
  }
  stepper_.replied(reply_);
}

Routine<void> WorkerProcess::push_pull(Fiber& fiber, bool cut) {
  Checks::Places places;
  for (std::size_t index = 0; index < session_.ranges(); ++index) {
    places.emplace_back(state_of(index), session_.range(index).step());
  }
  const Checks::Components components = checks_.take_components(rank_, places);
  co_await compute(fiber, components);
  session_.begin_push_pull(stepper_.sequence(), cut, begin_now());
  reply_ = co_await run_step(fiber, parameters_);
  // A copy that was made the primary knows that a push is settled, not whether it was used.
  const bool is_known =
      !components.empty() && (config_.replicas_to_aggregate == 0 || config_.ps_replicas == 1);
  for (std::size_t index = 0; index < places.size() && is_known && !reply_.joined; ++index) {
    if (state_of(index) != places[index].first) {  // set to another state since: lost with its own
      continue;
    }
    if (session_.was_dropped(index)) {
      checks_.push_dropped(index, state_of(index), components[index]);
    } else if (!config_.sync_replicas || session_.range(index).step() > places[index].second) {
      // (Else the run has ended before its step was made.)
      checks_.push_acknowledged(index, state_of(index), components[index]);
    }
  }
}

Routine<void> WorkerProcess::take_elastic_step(Fiber& fiber, bool cut) {
  while (true) {
    while (stepper_.next() == roles::Stepper::Action::kCompute) {
      co_await compute(fiber, {});
      session_.push(stepper_.batch().slot);
      co_await perform(fiber);
      stepper_.pushed();
    }
    const bool goes_on = session_.outcome() == roles::RunSession::Outcome::kNeedsWork;
    session_.begin_await_step(stepper_.sequence(), cut, goes_on ? awake_.now() : begin_now());
    const roles::StepResult next = co_await run_step(fiber, next_parameters_);
    if (session_.outcome() != roles::RunSession::Outcome::kNeedsWork) {
      reply_ = next;
      break;
    }
    stepper_.needs(session_.work());
  }
  std::swap(parameters_, next_parameters_);
}

Routine<bool> WorkerProcess::leave(Fiber& fiber) {
  session_.begin_await_end(begin_now());
  try {
    co_await run(fiber);
  } catch (const Failure&) {
    if (!session_.was_released()) {
      throw;
    }  // when the run is over, a signal does not matter any more
  }
  const bool released = session_.was_released();
  if (stepper_.left(released)) {
    kept_result_ = parameters_;
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
    parameters_ = kept_result_;
  }
  reply_ = stepper_.reply();
  co_return stepper_.result() != roles::Stepper::Result::kNone;
}

void WorkerProcess::print_result(bool is_chief) {
  std::vector<StateName> states;
  for (std::size_t index = 0; index < session_.ranges(); ++index) {
    states.push_back(state_of(index));
  }
  checks_.result(name(), is_chief, reply_.step, states, parameters_);
}

Routine<void> WorkerProcess::live(Fiber& fiber) {
  co_await sleep(fiber, milliseconds(pace_.load_ms));
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
  }
  exit(roles::kDone, has ? "printed the result" : "the final parameters went with a ps");
}

// ------------------------------------------------------------------------------------- the chief

ChiefProcess::ChiefProcess(World& world, Network& network, Checks& checks,
                           const roles::RunConfig& config, const Pace& pace, Disk* disk,
                           roles::Task task, std::size_t node, std::size_t size, OnEnd on_end)
    : WorkerProcess(world, network, checks, config, pace, std::move(task), node, size,
                    std::move(on_end)),
      disk_(disk) {}

void ChiefProcess::start() {
  prepare();
  for (std::size_t index = 0; index < session_.ranges(); ++index) {
    cut_channels_.push_back(std::make_unique<Channel>());
  }
  collector_ = &spawn([this](Fiber& fiber) { return collect_cuts(fiber); });
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

SavedState ChiefProcess::state_to_train() {
  if (reply_.finished) {
    return {.step = reply_.step, .tensors = {parameters_}};
  }
  if (newest_) {
    world_.mark(Mark::kRestoredFromCut);
    return *newest_;
  }
  if (disk_ != nullptr && disk_->newest) {
    world_.mark(Mark::kRestoredFromCut);
    return *disk_->newest;
  }
  SavedState state{.step = 0, .tensors = {Values(size_)}};
  if (config_.every_gradient_counts()) {
    initialize(state.tensors.front());
  }
  return state;
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
    try {
      bool is_settled = false;
      while (!is_settled) {
        co_await train(fiber);
        is_settled = co_await settle(fiber);
      }
      print_result(/*is_chief=*/true);
    } catch (const RunOver&) {
      is_over = true;
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
    while (job_) {
      co_await sleep(fiber, kLook);
    }
    saved_ = false;
    job_ = CutJob{.sequence = 0, .generation = session_.generation(), .now = true};
    wake(*collector_);
    while (job_) {
      co_await sleep(fiber, kLook);
      throw_if_stopped();
    }
    if (saved_ || now() + kSaveAgain >= deadline) {
      co_return true;
    }
    co_await sleep(fiber, kSaveAgain);
    throw_if_stopped();
  }
}

bool ChiefProcess::wants_cut(std::uint64_t step) const {
  return pace_.cut_every != 0 && step % pace_.cut_every == 0;
}

// ------------------------------------------------------------------------------------------ cuts

void ChiefProcess::took_cut(std::uint64_t sequence) {
  if (!job_) {
    job_ = CutJob{.sequence = sequence, .generation = reply_.generation};
    wake(*collector_);
  }
}

Routine<void> ChiefProcess::collect_cuts(Fiber& fiber) {
  while (true) {
    while (!job_) {
      co_await wait(fiber, Time::max());
    }
    saved_ = co_await collect(fiber, *job_);
    job_.reset();
  }
}

Routine<bool> ChiefProcess::collect(Fiber& fiber, CutJob job) {
  SavedState state;
  for (std::size_t index = 0; index < session_.ranges(); ++index) {
    Channel& channel = *cut_channels_[index];
    std::uint8_t replica = session_.range(index).replica();
    const net::TaskId host = roles::host_of_range(task_.cluster, index, replica);
    FiberProcess::open(channel, fiber, host.index,
                       {.cluster = {},
                        .from = task_.self,
                        .to = host,
                        .purpose = net::ChannelPurpose::kState,
                        .replica = replica,
                        .incarnation = task_.incarnation});
    Time deadline = now() + kDialAttempt;
    bool is_welcomed = false;
    std::optional<Frame> cut;
    while (!cut) {
      while (channel.is_open && !channel.has_frame() && now() < deadline) {
        co_await wait(fiber, deadline);
      }
      if (!channel.has_frame()) {
        close(channel);
        co_return false;
      }
      Frame frame = take(channel);
      if (!is_welcomed) {
        if (frame.header.kind != FrameKind::kWelcome) {
          close(channel);
          co_return false;
        }
        is_welcomed = true;
        deadline = now() + task_.timeouts.silence;
        network_.send(channel.id, *this,
                      {.kind = FrameKind::kGetCut,
                       .flags = job.now ? std::uint16_t{net::kFlagCut} : std::uint16_t{0},
                       .sequence = job.sequence,
                       .generation = job.generation});
        continue;
      }
      cut = std::move(frame);
    }
    close(channel);
    if (cut->header.kind != FrameKind::kCut) {
      co_return false;
    }
    const math::Range range = session_.range(index).range;
    const std::size_t tensors = 1 + (config_.optimizer.kind == math::OptimizerKind::kSgd    ? 0U
                                     : config_.optimizer.kind == math::OptimizerKind::kAdam ? 2U
                                                                                            : 1U);
    if (cut->body.size() != tensors * range.size() * sizeof(float)) {
      world_.violate(name() + " was sent a cut of another size");
      co_return false;
    }
    if (index == 0) {
      state.step = cut->header.step;
      state.tensors.assign(tensors, Values(size_));
    } else if (cut->header.step != state.step && config_.every_gradient_counts()) {
      co_return false;
    }
    for (std::size_t tensor = 0; tensor < tensors && range.size() != 0; ++tensor) {
      std::memcpy(state.tensors[tensor].data() + range.begin,
                  cut->body.data() + tensor * range.size() * sizeof(float),
                  range.size() * sizeof(float));
    }
  }
  world_.mark(Mark::kCutCollected);
  newest_ = state;
  if (disk_ != nullptr) {
    disk_->newest = std::move(state);
  }
  co_return true;
}

// ----------------------------------------------------------------------------------------- views

void ChiefProcess::act_on_views() {
  struct Apply {
    ChiefProcess& chief;
    void operator()(const roles::DialHost& order) const {
      chief.hosts_[order.host]->is_dialed = true;
      chief.wake(*chief.serving_[order.host]);
    }
    void operator()(roles::SendToHost& order) const {
      const Host& host = *chief.hosts_[order.host];
      if (host.is_welcomed && host.channel.is_open) {
        chief.network_.send(host.channel.id, chief, order.header, std::move(order.body));
      }
    }
    void operator()(const roles::Note& order) const { chief.note(order.text); }
  };
  views_->effects().drain(Apply{*this});
  wake(*views_time_);  // the deadline may be another one
}

Routine<void> ChiefProcess::keep_views_time(Fiber& fiber) {
  while (true) {
    co_await wait(fiber, views_->deadline());
    if (now() >= views_->deadline()) {
      views_->time(now());
      act_on_views();
    }
  }
}

// One attempt after the other, and what comes over the channel if it is opened.
Routine<void> ChiefProcess::serve(Fiber& fiber, roles::HostNumber number) {
  Host& host = *hosts_[number];
  const net::TaskId ps =
      roles::host_of_range(task_.cluster, views_->range_of(number), views_->replica_of(number));
  while (true) {
    while (!std::exchange(host.is_dialed, false)) {
      co_await wait(fiber, Time::max());
    }
    FiberProcess::open(host.channel, fiber, ps.index,
                       {.cluster = {},
                        .from = task_.self,
                        .to = ps,
                        .purpose = net::ChannelPurpose::kView,
                        .replica = views_->replica_of(number),
                        .incarnation = task_.incarnation});
    const Time deadline = now() + kDialAttempt;
    while (host.channel.is_open && !host.channel.has_frame() && now() < deadline) {
      co_await wait(fiber, deadline);
    }
    host.is_welcomed =
        host.channel.has_frame() && take(host.channel).header.kind == FrameKind::kWelcome;
    if (!host.is_welcomed) {
      close(host.channel);
      views_->not_reached(number, now());
      act_on_views();
      continue;
    }
    views_->reached(number, now());
    act_on_views();
    co_await listen(fiber, number);
    close(host.channel);
    host.is_welcomed = false;
    views_->closed(number, now());
    act_on_views();
  }
}

Routine<void> ChiefProcess::listen(Fiber& fiber, roles::HostNumber number) {
  Channel& channel = hosts_[number]->channel;
  while (true) {
    const Time silent_at = now() + task_.timeouts.silence;
    while (channel.is_open && !channel.has_frame() && now() < silent_at) {
      co_await wait(fiber, silent_at);
    }
    if (!channel.has_frame()) {
      co_return;
    }
    const Frame frame = take(channel);
    net::Report report;
    if (frame.header.kind != FrameKind::kReport || net::decode(frame.body, report)) {
      co_return;
    }
    if (world_.traces()) {
      note("hears of range " + std::to_string(views_->range_of(number)) + ", replica " +
           std::to_string(views_->replica_of(number)) + ": view " + std::to_string(report.view) +
           ", standing " + std::to_string(static_cast<int>(report.standing)) +
           (report.holds ? ", holds" : "") + (report.wants_alone ? ", wants alone" : "") +
           (report.wants_pair ? ", wants pair" : "") + (report.finished ? ", finished" : ""));
    }
    views_->heard(number, report);
    act_on_views();
  }
}

}  // namespace disttf::sim
