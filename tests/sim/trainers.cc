#include "tests/sim/trainers.h"

#include <algorithm>
#include <cstring>

namespace disttf::sim {

using net::FrameHeader;
using net::FrameKind;
using roles::Failure;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr milliseconds kBeatAttempt{2000};
constexpr milliseconds kFirstViews{500};
constexpr seconds kOverseersFarewell{3};
constexpr seconds kLastSave{60};
constexpr milliseconds kSaveAgain{20};
constexpr std::uint64_t kLongestViewPauseMs = 250;

}  // namespace

WorkerProcess::WorkerProcess(World& world, Network& network, Checks& checks,
                             const roles::RunConfig& config, const Pace& pace, roles::Task task,
                             std::size_t node, std::size_t size, OnEnd on_end)
    : TrainerProcess(world, network, checks, config, std::move(task), node, size,
                     std::move(on_end)),
      pace_(pace) {}

void WorkerProcess::start() {
  for (std::size_t index = 0; index < links_.size(); ++index) {
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
      const Time deadline = now() + kBeatAttempt;
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

// -------------------------------------------------------------------------------------- training

std::shared_ptr<const Values> WorkerProcess::gradient_of(
    std::uint64_t step, std::size_t slot, const Checks::Components& components) const {
  const auto gradient = std::make_shared<Values>(size_);
  checks_.fill_gradient(parameters_, step, slot, components, *gradient);
  return gradient;
}

// The time that a gradient takes.
Routine<void> WorkerProcess::compute(Fiber& fiber) {
  const std::uint64_t bits = world_.draw(Draw::kPace, task_.incarnation, ++computed_);
  std::uint64_t us = pace_.compute_us / 2 + (bits >> 32U) % (pace_.compute_us + 1);
  if (pace_.slow_one_in != 0 && (bits & 0xFFFFU) % pace_.slow_one_in == 0) {
    us += 20'000'000;
  }
  co_await sleep(fiber, std::chrono::microseconds(us));
  throw_if_stopped();
}

// A ps that was replaced while it was silent learns it from this.
void WorkerProcess::joined(std::uint32_t generation) {
  if (std::exchange(generation_, generation) != generation) {
    for (Fiber* const fiber_of_beat : beating_) {
      wake(*fiber_of_beat);
    }
  }
}

void WorkerProcess::keep_result() {
  if (std::exchange(reply_.finished, false) && config_.every_gradient_counts()) {
    kept_result_ = parameters_;
  }
}

Routine<void> WorkerProcess::train(Fiber& fiber) {
  keep_result();
  reply_ = co_await pull(fiber);
  local_step_ = 0;
  while (!reply_.finished) {
    co_await take_step(fiber);
  }
}

Routine<void> WorkerProcess::take_step(Fiber& fiber) {
  throw_if_stopped();
  const std::uint64_t sequence = ++local_step_;
  const bool cut = leads() && pace_.cut_every != 0 && (reply_.step + 1) % pace_.cut_every == 0;
  if (config_.elastic()) {
    co_await take_elastic_step(fiber, sequence, cut);
  } else {
    co_await compute(fiber);
    Checks::Places places;
    for (const Link& link : links_) {
      places.push_back({{.lineage = link.incarnation, .generation = link.generation}, link.step});
    }
    const Checks::Components components = checks_.take_components(rank(), places);
    const auto gradient = gradient_of(reply_.step, rank(), components);
    reply_ = co_await push_pull(fiber, sequence, cut, gradient, components);
  }
  if (cut && !reply_.joined) {
    took_cut(sequence);
  }
}

Routine<void> WorkerProcess::take_elastic_step(Fiber& fiber, std::uint64_t sequence, bool cut) {
  std::vector<bool> pushed(config_.micro_batches, false);
  std::vector<std::uint64_t> missing;
  const std::uint64_t stride = reply_.share >> 32U;
  for (std::uint64_t slot = reply_.share & 0xFFFFFFFFU; stride != 0 && slot < pushed.size();
       slot += stride) {
    missing.push_back(slot);
  }
  bool is_made = false;
  while (!is_made) {
    for (const std::uint64_t slot : missing) {
      if (slot < pushed.size() && !pushed[slot]) {
        pushed[slot] = true;
        co_await compute(fiber);
        push(slot, gradient_of(reply_.step, slot, {}));
      }
    }
    is_made = co_await await_step(fiber, sequence, cut, reply_);
    missing = work_;
  }
}

void WorkerProcess::print_result() {
  std::vector<StateName> states;
  for (const Link& link : links_) {
    states.push_back({.lineage = link.incarnation, .generation = link.generation});
  }
  checks_.result(name(), leads(), reply_.step, states, parameters_);
}

Routine<void> WorkerProcess::live(Fiber& fiber) {
  co_await sleep(fiber, milliseconds(pace_.load_ms));
  bool is_late = co_await connect(fiber);
  if (!is_late) {
    try {
      static_cast<void>(co_await get_config(fiber));
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
      released = co_await await_end(fiber);
    }
  } catch (const RunOver&) {
  }
  if (config_.every_gradient_counts()) {
    if (reply_.finished || has_kept_result()) {
      if (!reply_.finished) {
        parameters_ = kept_result_;
        reply_.step = config_.train_steps;
      }
      print_result();
      exit(roles::kDone, "printed the result");
      co_return;
    }
  }
  const std::optional<std::uint64_t> step = co_await fetch_final(fiber);
  if (step) {
    reply_.step = *step;
    print_result();
  }
  exit(roles::kDone, step ? "printed the result" : "the final parameters went with a ps");
}

// ------------------------------------------------------------------------------------- the chief

ChiefProcess::ChiefProcess(World& world, Network& network, Checks& checks,
                           const roles::RunConfig& config, const Pace& pace, Disk* disk,
                           roles::Task task, std::size_t node, std::size_t size, OnEnd on_end)
    : WorkerProcess(world, network, checks, config, pace, std::move(task), node, size,
                    std::move(on_end)),
      disk_(disk) {}

void ChiefProcess::start() {
  for (std::size_t index = 0; index < links_.size(); ++index) {
    cut_channels_.push_back(std::make_unique<Channel>());
  }
  collector_ = &spawn([this](Fiber& fiber) { return collect_cuts(fiber); });
  if (config_.ps_replicas > 1) {
    keepers_.resize(links_.size());
    told_.resize(links_.size());
    for (std::size_t range = 0; range < links_.size(); ++range) {
      for (const std::uint8_t replica : {std::uint8_t{0}, std::uint8_t{1}}) {
        hosts_.push_back(std::make_unique<Host>());
        hosts_.back()->range = range;
        hosts_.back()->replica = replica;
      }
    }
    for (std::size_t index = 0; index < hosts_.size(); ++index) {
      spawn([this, index](Fiber& fiber) { return oversee(fiber, index); });
    }
    spawn([this](Fiber& fiber) { return beat_on_views(fiber); });
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
  if (!hosts_.empty()) {
    const Time deadline = now() + kFirstViews;
    while (now() < deadline &&
           !std::ranges::all_of(told_, [](const auto& view) { return view.has_value(); })) {
      co_await sleep(fiber, milliseconds(5));
    }
  }
  bool is_over = co_await connect(fiber);
  if (!is_over) {
    try {
      bool is_settled = false;
      while (!is_settled) {
        co_await train(fiber);
        is_settled = co_await settle(fiber);
      }
      print_result();
    } catch (const RunOver&) {
      is_over = true;
    }
  }
  if (is_over) {
    world_.mark(Mark::kChiefLostAtEnd);
  }
  co_await shutdown(fiber);
  if (!hosts_.empty()) {
    finishing_ = true;
    for (const auto& host : hosts_) {
      if (host->channel.is_open && host->is_welcomed && !host->finished) {
        network_.send(host->channel.id, *this, {.kind = FrameKind::kShutdown});
      }
    }
    const Time deadline = now() + kOverseersFarewell;
    while (now() < deadline &&
           !std::ranges::all_of(hosts_, [](const auto& host) { return host->finished; })) {
      co_await sleep(fiber, milliseconds(5));
    }
  }
  exit(roles::kDone, "has led the run");
}

Routine<bool> ChiefProcess::settle(Fiber& fiber) {
  const Time deadline = now() + kLastSave;
  while (true) {
    const bool is_result = co_await await_others(fiber, reply_);
    if (!is_result) {
      co_return false;
    }
    if (!config_.every_gradient_counts()) {
      reply_ = co_await peek(fiber);
    }
    if (disk_ == nullptr) {
      co_return true;
    }
    while (job_) {
      co_await sleep(fiber, milliseconds(5));
    }
    saved_ = false;
    job_ = CutJob{.sequence = 0, .generation = generation(), .now = true};
    wake(*collector_);
    while (job_) {
      co_await sleep(fiber, milliseconds(5));
      throw_if_stopped();
    }
    if (saved_ || now() >= deadline) {
      co_return true;
    }
    co_await sleep(fiber, kSaveAgain);
  }
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
  for (std::size_t index = 0; index < links_.size(); ++index) {
    Channel& channel = *cut_channels_[index];
    std::uint8_t replica = links_[index].replica;
    const net::TaskId host = roles::host_of_range(task_.cluster, index, replica);
    FiberProcess::open(channel, fiber, host.index,
                       {.cluster = {},
                        .from = task_.self,
                        .to = host,
                        .purpose = net::ChannelPurpose::kState,
                        .replica = replica,
                        .incarnation = task_.incarnation});
    Time deadline = now() + kBeatAttempt;
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
    const math::Range range = links_[index].range;
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

Routine<void> ChiefProcess::beat_on_views(Fiber& fiber) {
  while (true) {
    for (const auto& host : hosts_) {
      if (host->channel.is_open && host->is_welcomed) {
        network_.send(host->channel.id, *this, {.kind = FrameKind::kHeartbeat});
      }
    }
    co_await sleep(fiber, roles::kHeartbeatInterval);
  }
}

void ChiefProcess::send_view(const Host& host, const net::View& view) {
  if (host.channel.is_open && host.is_welcomed) {
    network_.send(host.channel.id, *this, {.kind = FrameKind::kView}, net::encode(view));
  }
}

void ChiefProcess::tell(std::size_t range) {
  const auto& view = keepers_[range].view();
  if (!view || view == told_[range] || finishing_) {
    return;
  }
  told_[range] = view;
  note("range " + std::to_string(range) + ": view " + std::to_string(view->number) + ", primary " +
       std::to_string(view->primary) + (view->paired ? ", paired" : ", alone"));
  for (const auto& host : hosts_) {
    if (host->range == range) {
      send_view(*host, *view);
    }
  }
}

bool ChiefProcess::has_ended(const net::TaskId& ps) const {
  return std::ranges::any_of(hosts_, [&](const auto& host) {
    return host->finished && roles::host_of_range(task_.cluster, host->range, host->replica) == ps;
  });
}

Routine<void> ChiefProcess::oversee(Fiber& fiber, std::size_t index) {
  Host& host = *hosts_[index];
  const net::TaskId ps = roles::host_of_range(task_.cluster, host.range, host.replica);
  std::uint64_t ceiling_ms = 50;
  std::uint64_t draws = 0;
  while (!host.finished) {
    FiberProcess::open(host.channel, fiber, ps.index,
                       {.cluster = {},
                        .from = task_.self,
                        .to = ps,
                        .purpose = net::ChannelPurpose::kView,
                        .replica = host.replica,
                        .incarnation = task_.incarnation});
    host.is_welcomed = false;
    Time deadline = now() + kBeatAttempt;
    while (host.channel.is_open || host.channel.has_frame()) {
      if (!host.channel.has_frame()) {
        if (now() >= deadline) {
          break;
        }
        co_await wait(fiber, deadline);
        continue;
      }
      const Frame frame = take(host.channel);
      deadline = now() + task_.timeouts.silence;
      if (!host.is_welcomed) {
        if (frame.header.kind != FrameKind::kWelcome) {
          break;
        }
        host.is_welcomed = true;
        ceiling_ms = 50;
        if (finishing_) {
          network_.send(host.channel.id, *this, {.kind = FrameKind::kShutdown});
        }
        continue;
      }
      net::Report report;
      if (frame.header.kind != FrameKind::kReport || net::decode(frame.body, report)) {
        break;
      }
      if (world_.traces()) {
        note("hears of range " + std::to_string(host.range) + " from " + net::to_string(ps) +
             ": view " + std::to_string(report.view) + ", standing " +
             std::to_string(static_cast<int>(report.standing)) + (report.holds ? ", holds" : "") +
             (report.wants_alone ? ", wants alone" : "") +
             (report.wants_pair ? ", wants pair" : "") + (report.finished ? ", finished" : ""));
      }
      host.finished = host.finished || report.finished;
      keepers_[host.range].hear(host.replica, report);
      tell(host.range);
      if (const auto& view = keepers_[host.range].view(); view && report.view < view->number) {
        send_view(host, *view);
      }
    }
    close(host.channel);
    if (std::exchange(host.is_welcomed, false)) {
      keepers_[host.range].lose(host.replica);
      tell(host.range);
    } else if (finishing_ && has_ended(ps)) {
      host.finished = true;
    }
    if (!host.finished) {
      const milliseconds pause(
          1 + world_.below(std::min(ceiling_ms, kLongestViewPauseMs), Draw::kBackoff,
                           task_.incarnation % (1U << 20U) * 64 + index, ++draws));
      ceiling_ms = std::min<std::uint64_t>(2 * ceiling_ms, 2000);
      co_await sleep(fiber, pause);
    }
  }
}

}  // namespace disttf::sim
