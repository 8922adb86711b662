// The parts of the simulated chief that follow roles/chief/shell/checkpointer.cc and
// snapshot_link.cc: they execute the requests of the SnapshotCoordinator.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "math/optimizer.h"
#include "net/wire/snapshot_messages.h"
#include "tests/sim/chief_process.h"

namespace disttf::sim {

using net::FrameHeader;
using net::FrameKind;
using roles::HostContact;
using roles::SnapshotAction;
using roles::SnapshotRequest;
using std::chrono::microseconds;

namespace {

// Between two attempts to read from a store that is unavailable.
constexpr std::chrono::seconds kStorePause{1};

std::uint16_t flags_of(const SnapshotRequest& request) {
  return request.now ? std::uint16_t{net::kFlagSnapshot} : std::uint16_t{0};
}

SavedState saved_state_of(const roles::TrainingState& state) {
  SavedState saved{.step = state.step, .tensors = {}, .early_stop_state = state.early_stop_state};
  const auto add = [&saved](std::span<const float> values) {
    saved.tensors.emplace_back(values.begin(), values.end());
  };
  add(state.parameters.span());
  for (const roles::TrainingState::Tensor& tensor : state.optimizer) {
    add(tensor.values.span());
  }
  return saved;
}

}  // namespace

void ChiefProcess::start_snapshots() {
  roles::SnapshotCoordinator::Options options{.ps = {},
                                              .replicated = config_.ps_replicas > 1,
                                              .sharded = checkpoint_.sharded,
                                              .same_step = config_.every_gradient_counts()};
  for (std::size_t index = 0; index < session_.ranges(); ++index) {
    snapshot_channels_.push_back(std::make_unique<Channel>());
    options.ps.push_back(net::to_string(net::TaskId{.job = net::Job::kPs, .index = index}));
  }
  for (const auto& tensor : math::Optimizer(config_.optimizer, 0, config_.isa).state()) {
    tensor_names_.emplace_back(tensor.name);
  }
  coordinator_.emplace(std::move(options), world_.draw(Draw::kDisk, task_.incarnation, 0));
  schedule_.emplace(checkpoint_, config_.train_steps, now());
  saver_ = &spawn([this](Fiber& fiber) { return keep_snapshots(fiber); });
}

// ----------------------------------------------------- the computing thread's part

bool ChiefProcess::wants_snapshot(std::uint64_t step) {
  return schedule_->wants(step, snapshot_.has_value(), now());
}

void ChiefProcess::took_snapshot(std::uint64_t sequence) {
  start_snapshot({.sequence = sequence, .generation = reply_.generation});
}

void ChiefProcess::start_snapshot(const SnapshotRequest& request) {
  if (!snapshot_) {
    snapshot_ = request;
    wake(*saver_);
  }
}

Routine<void> ChiefProcess::await_idle(Fiber& fiber, Time deadline) {
  while (snapshot_ && now() < deadline) {
    idle_waiter_ = &fiber;
    co_await wait(fiber, deadline);
  }
  idle_waiter_ = nullptr;
}

Routine<void> ChiefProcess::save_now(Fiber& fiber, net::Generation generation, Time deadline) {
  co_await await_idle(fiber, deadline);
  start_snapshot({.generation = generation, .now = true, .deadline = deadline});
  co_await await_idle(fiber, deadline);
}

Routine<bool> ChiefProcess::save_final(Fiber& fiber, Time deadline) {
  co_await await_idle(fiber, deadline);
  start_snapshot(
      {.generation = session_.generation(), .now = true, .again = false, .deadline = deadline});
  co_await await_idle(fiber, deadline);
  co_return !snapshot_ && last_done_;
}

Routine<SavedState> ChiefProcess::state_to_train(Fiber& fiber) {
  if (leader_.has_result()) {
    co_return SavedState{.step = reply_.step, .tensors = {parameters_}};
  }
  std::optional<SavedState> state;
  if (newest_) {
    world_.mark(Mark::kRestoredFromSnapshot);
    state = saved_state_of(*newest_);
  } else if (disk_ != nullptr) {
    state = co_await saved_state(fiber);
  }
  if (!state) {
    state = SavedState{.step = 0, .tensors = {Values(size_)}};
    if (link_) {
      state->tensors.front() = initial_;
    } else if (config_.every_gradient_counts()) {
      initialize(state->tensors.front());
    }
  }
  if (early_stop_.keeps_best()) {
    session_.record_best(state->early_stop_state.best);
  }
  if (state->early_stop_state.step != 0 && state->early_stop_state.step == state->step) {
    session_.provides_result();
  }
  co_return std::move(*state);
}

// Retries, since a store that is unavailable may return.
Routine<std::optional<SavedState>> ChiefProcess::saved_state(Fiber& fiber) {
  const Time deadline = now() + task_.timeouts.peer;
  while (true) {
    try {
      const auto found = disk_->newest();
      co_return found ? std::optional(saved_state_of(*found)) : std::nullopt;
    } catch (const std::system_error& error) {
      if (!roles::is_away(error.code())) {
        throw;
      }
      if (now() >= deadline) {
        throw roles::Failure(roles::kLostPeers, error.what());
      }
    }
    co_await sleep(fiber, kStorePause);
    throw_if_stopped();
  }
}

// ----------------------------------------------------- the other thread's part

Routine<void> ChiefProcess::keep_snapshots(Fiber& fiber) {
  while (true) {
    while (!snapshot_) {
      co_await wait(fiber, Time::max());
    }
    const SnapshotRequest request = *snapshot_;
    SnapshotAction action = coordinator_->begin(request);
    while (!std::holds_alternative<roles::SnapshotDone>(action)) {
      action = co_await carry_out(fiber, request, action);
    }
    const auto& done = std::get<roles::SnapshotDone>(action);
    if (!done.step) {
      close_snapshot_channels();
    }
    if (!done.why_not.empty()) {
      note("no checkpoint was saved: " + done.why_not);
    } else if (done.step && disk_ != nullptr) {
      note("has saved step " + std::to_string(*done.step));
    }
    last_done_ = done.is_done;
    snapshot_.reset();
    if (idle_waiter_ != nullptr) {
      wake(*idle_waiter_);
    }
  }
}

void ChiefProcess::close_snapshot_channels() {
  for (const auto& channel : snapshot_channels_) {
    close(*channel);
  }
}

Routine<SnapshotAction> ChiefProcess::carry_out(Fiber& fiber, SnapshotRequest request,
                                                SnapshotAction action) {
  if (const auto* const host = std::get_if<roles::ConnectToHost>(&action)) {
    const HostContact contact = co_await connect_to(fiber, *host, request.deadline);
    co_return coordinator_->connected(contact, now());
  }
  if (const auto* const wanted = std::get_if<roles::FindSnapshot>(&action)) {
    const std::optional<std::uint64_t> step = co_await find(fiber, *wanted, request);
    co_return coordinator_->found(step, now());
  }
  if (const auto* const wanted = std::get_if<roles::RequestShardWrite>(&action)) {
    co_return coordinator_->told(request_shard_write(*wanted, request));
  }
  if (const auto* const wanted = std::get_if<roles::AwaitWritten>(&action)) {
    co_return coordinator_->written(co_await await_written(fiber, *wanted));
  }
  if (const auto* const pause = std::get_if<roles::PauseSnapshot>(&action)) {
    close_snapshot_channels();
    co_await wait(fiber, pause->until);
    co_return coordinator_->paused();
  }
  if (disk_ != nullptr) {  // models the duration of disk operations
    co_await sleep(fiber, disk_time());
  }
  std::optional<KilledAtDisk> killed;
  try {
    action = store(std::move(action));
  } catch (const KilledAtDisk& death) {
    killed = death;
  } catch (const std::exception& error) {
    action = coordinator_->failed(error.what());
  }
  if (killed) {
    perish(killed->silently);
    co_await wait(fiber, Time::max());
  }
  co_return action;
}

Duration ChiefProcess::disk_time() {
  const std::uint64_t bits = world_.draw(Draw::kDisk, task_.incarnation, ++disk_uses_);
  const std::uint64_t us = 100 + bits % 20'000;
  return microseconds((bits >> 32U) % 64 == 0 ? 200 * us : us);
}

SnapshotAction ChiefProcess::store(SnapshotAction action) {
  if (const auto* const keep = std::get_if<roles::KeepState>(&action)) {
    collected_.step = keep->step;
    collected_.early_stop_state = early_stop_state_;
    checks_.snapshot_collected(name(), collected_.step, collected_.parameters.span());
    world_.mark(Mark::kSnapshotCollected);
    newest_ = std::make_shared<const roles::TrainingState>(std::exchange(collected_, {}));
    if (disk_ != nullptr) {
      disk_->is_written(newest_->step, view_of(*newest_));
      disk_->use([&] {
        checkpoints_->save(keep->attempt, *newest_, disk_->layout(), disk_->config_json(),
                           checkpoint_.max_to_keep);
      });
      disk_->was_saved(newest_->step);
    }
    return coordinator_->stored();
  }
  if (const auto* const commit = std::get_if<roles::CommitShards>(&action)) {
    disk_->use([&] {
      checkpoints_->commit_shards(commit->id, commit->files, disk_->layout(), disk_->config_json(),
                                  checkpoint_.max_to_keep, early_stop_state_);
    });
    world_.mark(Mark::kShardsCommitted);
    disk_->was_saved(commit->id.step);
    return coordinator_->stored();
  }
  const roles::SaveId id = std::get<roles::DiscardShards>(action).id;
  disk_->use([&] { checkpoints_->discard_shards(id); });
  return coordinator_->discarded(now());
}

// ----------------------------------------------------- a ps's state channel

Routine<std::optional<Frame>> ChiefProcess::await_frame(Fiber& fiber, Channel& channel,
                                                        Time deadline) {
  while (channel.is_open && !channel.has_frame() && now() < deadline) {
    co_await wait(fiber, deadline);
  }
  std::optional<Frame> frame;
  if (channel.has_frame()) {
    frame = take(channel);
  } else {
    close(channel);
  }
  co_return frame;
}

Routine<HostContact> ChiefProcess::connect_to(Fiber& fiber, roles::ConnectToHost action,
                                              Time deadline) {
  Channel& channel = *snapshot_channels_[action.ps];
  const net::TaskId host = roles::host_of_range(task_.cluster, action.ps, action.replica);
  FiberProcess::open(channel, fiber, host.index,
                     {.cluster = {},
                      .from = task_.self,
                      .to = host,
                      .purpose = net::ChannelPurpose::kState,
                      .replica = action.replica,
                      .incarnation = incarnation_});
  const Time until = std::min(deadline, now() + task_.timeouts.heartbeat_timeout);
  const std::optional<Frame> frame = co_await await_frame(fiber, channel, until);
  HostContact contact;
  net::Welcome welcome;
  if (!frame) {
    const bool is_refused = !network_.was_accepted(channel.id) && now() < until;
    contact.kind = is_refused ? HostContact::Kind::kTurnedAway : HostContact::Kind::kUnreachable;
  } else if (frame->header.kind == FrameKind::kWelcome && !net::decode(frame->body, welcome)) {
    contact = {.kind = HostContact::Kind::kWelcomed,
               .replica_role = welcome.replica_role,
               .state = welcome.state};
  } else {
    contact.kind = HostContact::Kind::kTurnedAway;
    close(channel);
  }
  co_return contact;
}

Routine<std::optional<std::uint64_t>> ChiefProcess::find(Fiber& fiber, roles::FindSnapshot action,
                                                         SnapshotRequest request) {
  Channel& channel = *snapshot_channels_[action.ps];
  if (channel.is_open) {
    network_.send(
        channel.id, *this,
        {.kind = action.fetch ? FrameKind::kGetSnapshotShard : FrameKind::kFindSnapshotShard,
         .flags = flags_of(request),
         .sequence = request.sequence,
         .generation = request.generation});
  }
  const Time until = std::min(request.deadline, now() + task_.timeouts.heartbeat_timeout);
  const std::optional<Frame> frame = co_await await_frame(fiber, channel, until);
  std::optional<std::uint64_t> step;
  if (frame && frame->header.kind == FrameKind::kSnapshotShard) {
    step = frame->header.step;
    if (action.fetch) {
      take_values(action.ps, frame->body);
    }
  }
  if (!step) {
    close(channel);
  }
  co_return step;
}

void ChiefProcess::take_values(std::size_t ps, std::span<const std::byte> body) {
  if (ps == 0) {
    collected_ = {};
    collected_.parameters = math::AlignedVector(size_);
    for (const std::string& name : tensor_names_) {
      collected_.optimizer.push_back({.name = name, .values = math::AlignedVector(size_)});
    }
  }
  const math::Range range = session_.range(ps).range;
  const std::size_t bytes = range.size() * sizeof(float);
  if (body.size() != (1 + tensor_names_.size()) * bytes) {
    world_.violate(name() + " was sent a snapshot shard of another size");
    return;
  }
  if (bytes == 0) {
    return;
  }
  std::memcpy(collected_.parameters.data() + range.begin, body.data(), bytes);
  for (roles::TrainingState::Tensor& tensor : collected_.optimizer) {
    body = body.subspan(bytes);
    std::memcpy(tensor.values.data() + range.begin, body.data(), bytes);
  }
}

std::optional<std::string> ChiefProcess::request_shard_write(const roles::RequestShardWrite& action,
                                                             const SnapshotRequest& request) {
  const Channel& channel = *snapshot_channels_[action.ps];
  if (!channel.is_open) {
    return "ps " + std::to_string(action.ps) + " could not be asked to write";
  }
  network_.send(channel.id, *this,
                FrameHeader{.kind = FrameKind::kWriteSnapshotShard,
                            .step = action.id.step,
                            .sequence = request.sequence,
                            .generation = request.generation},
                net::encode(net::WriteSnapshotShard{
                    .attempt = action.id.attempt,
                    .shard = static_cast<std::uint32_t>(action.ps),
                    .shards = static_cast<std::uint32_t>(snapshot_channels_.size())}));
  return std::nullopt;
}

Routine<ChiefProcess::Written> ChiefProcess::await_written(Fiber& fiber,
                                                           roles::AwaitWritten action) {
  Channel& channel = *snapshot_channels_[action.ps];
  std::optional<Frame> frame;
  do {
    const Time until = std::min(action.deadline, now() + task_.timeouts.heartbeat_timeout);
    frame = co_await await_frame(fiber, channel, until);
  } while (frame && frame->header.kind == FrameKind::kHeartbeat);
  Written written = roles::ShardNotWritten{.is_lost = true, .sentence = "a ps is lost"};
  if (frame &&
      (frame->header.kind == FrameKind::kWritten || frame->header.kind == FrameKind::kNotWritten)) {
    const std::string text(reinterpret_cast<const char*>(frame->body.data()), frame->body.size());
    if (frame->header.kind == FrameKind::kWritten) {
      written = roles::shard_file_from_json(text);
    } else {
      written = roles::ShardNotWritten{.is_lost = false, .sentence = text};
    }
  } else {
    close(channel);
  }
  co_return written;
}

}  // namespace disttf::sim
