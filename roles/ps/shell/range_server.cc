#include "roles/ps/shell/range_server.h"

#include <algorithm>
#include <asio/post.hpp>
#include <exception>
#include <random>
#include <utility>

#include "math/model.h"
#include "net/wire/backoff.h"
#include "roles/ps/shell/ps_process.h"
#include "run/process/tensor_memory.h"

namespace disttf::roles {

// So each part of an arena can be mapped by itself.
static_assert(ShardStorage::kArenaAlignment * sizeof(float) == net::kPageBytes);

using net::FrameHeader;
using net::FrameKind;
using std::chrono::milliseconds;

RangeServer::RangeServer(ParameterServer& process, RangeReplica& core)
    : process_(process),
      io_(process.io()),
      task_(process.task()),
      core_(core),
      meter_(task_, core),
      writer_(io_.make_writer()),
      shard_is_made_(io_.make_alarm()) {
  core_.roles().take_rest_with([this](ConnectionId primary) { take_rest(primary); });
}

// ---------------------------------------------------------------------------------- connections

asio::awaitable<void> RangeServer::serve_accepted(ConnectionId id, ConnectionPtr connection) {
  const net::ChannelPurpose purpose = connection->hello().purpose;
  if (purpose == net::ChannelPurpose::kStep) {
    connection->answer_offers(
        [this, rank = task_.cluster.rank_of(connection->hello().from)] { return terms_of(rank); });
  } else if (purpose == net::ChannelPurpose::kReplica) {
    connection->answer_offers([this] { return terms_of_primary(); });
  }
  co_await serve_frames(id, std::move(connection));
  // The primary's last updates may lie in memory: they count, although its connection has closed.
  if (purpose == net::ChannelPurpose::kReplica) {
    take_rest(id);
  }
}

// If invalid data lies in memory, an update may have been lost: the core receives it as an invalid
// frame, and drops its copy. (It is measured as part of the calling frame.)
void RangeServer::take_rest(ConnectionId primary) {
  using Rest = net::FrameConnection::Rest;
  net::FrameConnection* const connection = process_.find(primary);
  while (connection != nullptr) {
    FrameHeader header;
    const Rest rest = connection->take_rest(header);
    if (rest == Rest::kNone || !core_.follows(primary)) {
      return;
    }
    const net::BodyInPlace in_place =
        rest == Rest::kHeader ? connection->body_in_place() : net::BodyInPlace{};
    meter_.received(header, header.body_size, !in_place.bytes.empty());
    const BodyPlan plan = process_.core().header(primary, header, io_.now(), in_place);
    // The rest lies in memory only: no body can be read from the connection any more.
    if (plan.next == BodyPlan::Next::kStop || plan.is_body()) {
      return;
    }
  }
}

asio::awaitable<void> RangeServer::serve_frames(ConnectionId id, ConnectionPtr connection) {
  const bool is_step = connection->hello().purpose == net::ChannelPurpose::kStep;
  // A step channel has no heartbeat timeout, as a step may take long; the control channel's
  // heartbeats take its place. Nor has an evaluator's channel: no task waits for an evaluator.
  const bool may_omit_heartbeats = is_step || connection->hello().from.job == net::Job::kEvaluator;
  const milliseconds heartbeat_timeout =
      may_omit_heartbeats ? milliseconds{0} : milliseconds(task_.timeouts.heartbeat_timeout);
  while (connection->is_open()) {
    FrameHeader header;
    if (co_await connection->read_header(header, heartbeat_timeout)) {
      if (!connection->refused_with().empty()) {
        apply(
            Note{.level = Note::Level::kWarning,
                 .text = "refused " + connection->peer_text() + ": " + connection->refused_with()});
      }
      break;
    }
    const net::BodyInPlace& in_place = connection->body_in_place();
    // Measured around the call, since the core has no clock.
    meter_.received(header, header.body_size, !in_place.bytes.empty());
    const BodyPlan plan = header_came(id, header, in_place);
    // Before the effects: a measured step does not include sending its answers.
    process_.send_clock();
    process_.do_effects();
    if (plan.next == BodyPlan::Next::kStop ||
        (plan.is_body() &&
         !co_await read_body(id, connection, plan, header.kind == FrameKind::kPublish))) {
      break;
    }
  }
}

BodyPlan RangeServer::header_came(ConnectionId id, const FrameHeader& header,
                                  const net::BodyInPlace& in_place) {
  const RangeMeter::Call measured(meter_);
  // A gradient takes the short way.
  PushReceiver& pushes = core_.pushes();
  return pushes.takes(id, header) ? pushes.header(id, header, io_.now(), in_place)
                                  : process_.core().header(id, header, io_.now(), in_place);
}

BodyPlan RangeServer::body_came(ConnectionId id) {
  const RangeMeter::Call measured(meter_);
  PushReceiver& pushes = core_.pushes();
  return pushes.takes_body(id) ? pushes.body(id, io_.now()) : process_.core().body(id, io_.now());
}

asio::awaitable<bool> RangeServer::read_body(ConnectionId id, const ConnectionPtr& connection,
                                             BodyPlan plan, bool publishes) {
  while (plan.is_body()) {
    if (plan.next == BodyPlan::Next::kDiscard) {
      if (co_await connection->discard_body(plan.bytes, task_.timeouts.heartbeat_timeout)) {
        co_return false;
      }
    }
    for (const std::span<std::byte> place : plan.places) {
      if (co_await connection->read_body(place, task_.timeouts.heartbeat_timeout)) {
        co_return false;
      }
    }
    // Only here may the coroutine wait: the core itself cannot be interrupted between header and
    // body.
    if (publishes) {
      co_await prepare_shard(id);
    }
    plan = body_came(id);
    process_.send_clock();
    process_.do_effects();
  }
  co_return plan.next != BodyPlan::Next::kStop;
}

asio::awaitable<void> RangeServer::keep_backup() {
  // Pauses are random, so that ps that lost their backups together do not retry together.
  net::Backoff backoff(std::mt19937_64(io_.random()));
  const std::unique_ptr<Alarm> pause = io_.make_alarm();
  while (core_.host().connects_to_backup()) {
    if (core_.host().may_fill()) {
      const ConnectionPtr backup =
          co_await io_.dial_host(core_.state().index(), core_.host().other_replica());
      // The role may have changed while connecting.
      if (backup && core_.host().may_fill()) {
        const ConnectionId id = process_.add(backup);
        process_.core().reached(core_.host().replica, id, io_.now());
        process_.do_effects();
        offer_memory(backup);
        co_await serve_frames(id, backup);
        // Else a host that refuses every connection would be retried without a pause.
        if (core_.host().backup.is_complete()) {
          backoff.reset();
        }
        process_.core().closed(id, io_.now());
        process_.do_effects();
        process_.remove(id);
      }
      if (backup) {
        backup->close();
      }
    }
    co_await pause->wait_until(io_.now() + std::min(backoff.next(), kLongestDialPause));
  }
  core_.roles().stopped_connecting_to_backup();
}

// ---------------------------------------------------------------------------------------- memory

Arena RangeServer::make_arena(const RunConfig& config, math::Range range) {
  // The old shard's memory is released first: the machine may not have room for both.
  release_memory();
  // Checked first, so that the chief receives a sentence instead of a lost ps.
  io_.require_memory(ShardStorage::bytes_taken(config, range));
  const std::size_t floats = ShardStorage::arena_size(config, range);
  memory_ = io_.make_parameter_memory(core_.host().replica, floats);
  return arena_in(memory_, floats);
}

RangeServer::MadeShard RangeServer::make_shard(const RunConfig& config, math::Range range) {
  const std::size_t floats = ShardStorage::arena_size(config, range);
  MadeShard made{.memory = io_.make_parameter_memory(core_.host().replica, floats),
                 .shard = nullptr};
  made.shard = core_.state().make_shard(config, arena_in(made.memory, floats));
  return made;
}

asio::awaitable<void> RangeServer::prepare_shard(ConnectionId id) {
  auto next = core_.run_to_begin(id);
  while (next && maker_) {  // another chief's shard is being made
    co_await shard_is_made_->wait_until(Clock::time_point::max());
    // Other frames were handled meanwhile, so the run to begin may have changed.
    next = core_.run_to_begin(id);
  }
  if (!next) {
    co_return;
  }
  const math::Range range = core_.state().range_of(next->config);
  // body() makes a small shard by itself.
  if (ShardStorage::bytes_taken(next->config, range) < io_.sizes().large_shard) {
    co_return;
  }
  const auto made = std::make_shared<MadeShard>();
  try {
    release_memory();
    io_.require_memory(ShardStorage::bytes_taken(next->config, range));
    // On another thread: this ps goes on serving, and sends heartbeats, meanwhile.
    maker_ = io_.start_thread([this, made, config = next->config, range] {
      try {
        *made = make_shard(config, range);
      } catch (const std::exception&) {
        // The core tries again, and reports what is missing.
      }
      // Posted, so that the join returns at once: the thread has nothing left to do.
      asio::post(io_.context(), [this] {
        maker_.reset();
        shard_is_made_->wake();
      });
    });
  } catch (const std::exception&) {
    co_return;  // no thread or no memory: as above
  }
  while (maker_) {
    co_await shard_is_made_->wait_until(Clock::time_point::max());
  }
  // Unless the run was withdrawn or replaced while the shard was being made.
  if (made->shard && core_.run_to_begin(id)) {
    memory_ = std::move(made->memory);
    core_.state().prepared(std::move(next->json), std::move(made->shard));
  }
}

void RangeServer::release_memory() {
  if (memory_) {  // peers that still map it must not leave anything there
    memory_->take_no_more();
    memory_->set_parked(true);
    // Takes what peers have left before they saw the flag.
    memory_->poll();
  }
  memory_.reset();  // its memory is needed for the new one
  backup_.reset();  // it was offered updates of the old shard
}

Arena RangeServer::arena_in(const std::shared_ptr<net::InPlaceMemory>& memory, std::size_t floats) {
  Arena arena;
  // Asked for at each update: the backup may come and go during a run.
  arena.place_of_update = [this] { return place_of_update(); };
  if (memory) {
    arena.floats = {reinterpret_cast<float*>(memory->parameters().data()), floats};
    arena.owner = memory;
    arena.streams = io_.streams();
  }
  return arena;
}

std::span<float> RangeServer::place_of_update() {
  const std::shared_ptr<net::FrameConnection> backup = backup_.lock();
  if (!backup || updates_.plain == 0) {
    return {};
  }
  const UpdateShape& shape = updates_;
  const auto place_of = [&](std::size_t floats) {
    const auto place =
        backup->place_for(net::padded_update_head_bytes(shape.trainers), floats * sizeof(float));
    return std::span(reinterpret_cast<float*>(place.data()), place.size() / sizeof(float));
  };
  ++updates_since_state_;
  // Every n-th update carries the state before it, so that the backup can drop the deferred ones.
  if (updates_since_state_ >= updates_per_state(shape)) {
    // If there is no room for a state, a plain update follows, and the next update tries again.
    if (const std::span<float> place = place_of(shape.with_state); !place.empty()) {
      updates_since_state_ = 0;
      return place;
    }
  }
  return place_of(shape.plain);
}

UpdateShape RangeServer::update_shape() const {
  Shard& shard = *core_.state().shard();
  return {.trainers = shard.config().trainers,
          .is_sync = shard.config().sync_replicas,
          .plain = shard.range().size(),
          .with_state = shard.storage().update_size_with_state()};
}

void RangeServer::set_parked(bool parked) noexcept {
  if (memory_) {
    memory_->set_parked(parked);
  }
  if (const std::shared_ptr<net::FrameConnection> backup = backup_.lock()) {
    backup->set_parked(parked);
  }
}

// Both are polled in any case, as each wakes a reader of its own.
bool RangeServer::poll() noexcept {
  const bool has_request = memory_ && memory_->poll();
  const std::shared_ptr<net::FrameConnection> backup = backup_.lock();
  const bool has_ack = backup && backup->poll();
  return has_request || has_ack;
}

net::InPlaceTerms RangeServer::terms_of(std::size_t rank) const {
  const Shard* const shard = core_.state().shard().get();
  if (shard == nullptr) {
    return {};
  }
  return {.memory = memory_,
          .slot = rank,
          .least = shard->range().end * sizeof(float),
          .most = most_of_trainer(shard->config(), task_.cluster.ps.size())};
}

net::InPlaceTerms RangeServer::terms_of_primary() const {
  if (!core_.state().shard()) {
    return {};
  }
  const UpdateShape shape = update_shape();
  return {.memory = memory_,
          .slot = slot_of_primary(shape.trainers),
          .least = least_of_primary(shape),
          .most = most_of_primary(shape)};
}

// To the backup, which has received the run's configuration by now.
void RangeServer::offer_memory(const ConnectionPtr& backup) {
  if (!core_.state().shard()) {
    return;
  }
  updates_ = update_shape();
  // Without common memory updates travel as frames.
  if (io_.offer_updates(*backup, updates_)) {
    backup_ = backup;
    updates_since_state_ = updates_per_state(updates_);  // the first update is to carry a state
    has_logged_way_ = false;
  }
}

// --------------------------------------------------------------------------------------- effects

void RangeServer::apply(SendFrame& effect) {
  net::FrameConnection* const to = process_.find(effect.to);
  if (to == nullptr) {
    return;  // it has closed; its reader notices that
  }
  if (effect.owner) {
    // Parameters are borrowed: `owner` keeps the shard's memory until the frame has left.
    const std::size_t bytes = effect.borrowed.size();
    const bool is_sent = to->send_borrowed(effect.header, effect.borrowed, std::move(effect.owner));
    meter_.sent(effect.header, bytes, !is_sent);
  } else if (effect.header.kind == FrameKind::kUpdate) {  // the backup acknowledges it
    const std::size_t bytes = effect.body.size() + effect.borrowed.size();
    const auto told = to->send_acknowledged(effect.header, std::move(effect.body), effect.borrowed);
    const bool is_sent = told == net::FrameConnection::Delivery::kSent;
    meter_.sent(effect.header, bytes, !is_sent);
    if (!is_sent && !std::exchange(has_logged_way_, true)) {
      io_.log({.level = Note::Level::kInfo, .text = describe_way_to_backup(core_.state().index())});
    }
    // Handed off counts as acknowledged, so answers that waited for it may be sent now.
    if (told == net::FrameConnection::Delivery::kHandedOff) {
      process_.core().gave(core_.host().replica, effect.to, effect.header.request_id, io_.now());
    }
  } else if (net::Ack ack; effect.body.empty() && !ack.from_header(effect.header)) {
    const bool is_sent = to->acknowledge(ack);
    meter_.sent(effect.header, 0, !is_sent);
  } else {
    meter_.sent(effect.header, effect.body.size(), false);
    to->send(effect.header, std::move(effect.body));
  }
}

void RangeServer::apply(const CloseConnection& effect) { process_.apply(effect); }

void RangeServer::apply(const Note& effect) { process_.apply(effect); }

void RangeServer::apply(const FinishConnection& effect) {
  if (net::FrameConnection* const connection = process_.find(effect.id)) {
    connection->finish();
  }
}

void RangeServer::apply(RefuseConnection& effect) { process_.apply(effect); }

void RangeServer::apply(const ConnectToBackup&) {
  process_.spawn([this] { return keep_backup(); });
}

void RangeServer::apply(const DrainConnections& effect) { process_.drain_at_end(effect.ids); }

bool RangeServer::refuse(const ConnectionPtr& connection, const FrameHeader& header, ExitCode code,
                         const std::string& sentence) {
  apply(Note{.level = Note::Level::kWarning,
             .text = "refused " + connection->peer_text() + ": " + sentence});
  connection->refuse({.exit_code = static_cast<std::uint8_t>(code), .sentence = sentence},
                     header.request_id);
  return false;
}

}  // namespace disttf::roles
