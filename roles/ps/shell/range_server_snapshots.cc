#include <algorithm>
#include <array>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>
#include <atomic>
#include <optional>
#include <string_view>
#include <utility>

#include "math/model.h"
#include "net/wire/snapshot_messages.h"
#include "net/wire/text.h"
#include "roles/ps/shell/ps_process.h"
#include "run/process/tensor_memory.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;
using std::chrono::milliseconds;

// Every pause between two pieces may be a step, so a snapshot shard must not take too many.
constexpr std::size_t kMostTurns = 256;

// The time between two snapshots of the chief, for which its channel is kept. That the chief was
// replaced is noticed elsewhere.
constexpr std::chrono::minutes kLongestPause{5};

// The time for a whole snapshot shard, to a chief that keeps reading it.
constexpr std::chrono::hours kLongestTransfer{1};

// Between two looks whether a file has been written that a chief has ordered which is gone.
constexpr milliseconds kLookAtWriter{20};

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// What the connection's coroutine waits for while the other thread writes.
struct Writing {
  explicit Writing(PsIo& io) : done(io.make_alarm()) {}
  // Woken when there is a result, unless memory is too short to post that.
  const std::unique_ptr<Alarm> done;
  std::shared_ptr<const SnapshotShard> snapshot;  // held so that the ps's thread releases it last
  ShardFileWriter::Result result;
  std::atomic<bool> has_result = false;  // once true, the writing thread no longer uses `result`
};

}  // namespace

bool RangeServer::copy_snapshot() {
  return core_.state().copy_snapshot(io_.sizes().snapshot_piece);
}

// The chief's second thread fetches a snapshot shard here, or has it written, while its first one
// trains.
asio::awaitable<void> RangeServer::serve_snapshots(ConnectionPtr connection) {
  // Used by this connection alone: a chief that is suspended may read a snapshot there much later,
  // and nothing is written there unless the chief requests it.
  std::shared_ptr<net::InPlaceMemory> memory;
  connection->answer_offers([this, &memory] {
    memory = io_.make_snapshot_memory(state_bytes());
    return net::InPlaceTerms{.memory = memory, .most = most_of_snapshot_reader()};
  });
  milliseconds pause = task_.timeouts.heartbeat_timeout;  // until the first request
  while (connection->is_open()) {
    FrameHeader header;
    if (co_await connection->read_header(header, pause)) {
      break;
    }
    pause = kLongestPause;
    // The peer has not accepted the offer, so nothing will ever read this memory.
    if (!connection->shares_memory()) {
      memory.reset();
    }
    if (header.kind == FrameKind::kWriteSnapshotShard) {
      if (!co_await write_snapshot_shard(connection, header)) {
        break;
      }
      continue;
    }
    net::SnapshotShardRequest request;
    if (request.from_header(header) || header.body_size != 0) {
      refuse(connection, header, kError,
             "a state channel carries requests for snapshot shards only");
      break;
    }
    const std::optional<SnapshotShardName> name = core_.state().find_snapshot(request);
    std::shared_ptr<const SnapshotShard> snapshot;
    // Steps may be made while this waits, so the snapshot is looked up again afterwards.
    if (name && request.with_tensors) {
      snapshot = co_await whole_snapshot(*connection, name->sequence, request.generation);
    }
    // ACK in place of a snapshot: this ps does not have it.
    if (!name || (request.with_tensors && !snapshot)) {
      connection->send(net::Ack{header.request_id}.to_header());
      continue;
    }
    const FrameHeader reply =
        net::SnapshotShardReply{.request_id = header.request_id,
                                .step = snapshot ? snapshot->step : name->step,
                                .name = name->sequence,
                                .range_begin = core_.state().shard()->range().begin,
                                .generation = request.generation}
            .to_header();
    if (!snapshot) {
      connection->send(reply);
      continue;
    }
    if (memory && snapshot->values.span().size_bytes() <= memory->parameters().size()) {
      const std::span<const std::byte> body = co_await left_in(*memory, *connection, *snapshot);
      connection->send_borrowed(reply, body, memory);
    } else {
      connection->send_borrowed(reply, std::as_bytes(snapshot->values.span()), snapshot);
    }
    // The connection itself closes a peer that reads nothing.
    if (!co_await connection->drained(kLongestTransfer)) {
      connection->close();
    }
  }
}

// Steps are made between two pieces, possibly so many that another snapshot has replaced this one.
asio::awaitable<std::shared_ptr<const SnapshotShard>> RangeServer::whole_snapshot(
    const net::FrameConnection& asker, std::uint64_t name, net::Generation generation) {
  while (asker.is_open() && copy_snapshot()) {
    // Posted, so that frames of trainers are handled between two pieces.
    co_await asio::post(io_.context(), asio::use_awaitable);
  }
  // nullptr as well if a newer snapshot has replaced this one.
  co_return asker.is_open() ? core_.state().kept_snapshot(name, generation) : nullptr;
}

asio::awaitable<std::span<const std::byte>> RangeServer::left_in(const net::InPlaceMemory& memory,
                                                                 const net::FrameConnection& asker,
                                                                 const SnapshotShard& snapshot) {
  const std::span<const std::byte> from = std::as_bytes(snapshot.values.span());
  const std::span<std::byte> to = memory.parameters().first(from.size());
  const std::size_t most =
      std::max(io_.sizes().snapshot_piece * sizeof(float), from.size() / kMostTurns);
  for (std::size_t begin = 0; begin < from.size() && asker.is_open(); begin += most) {
    const auto piece = from.subspan(begin, std::min(most, from.size() - begin));
    std::copy(piece.begin(), piece.end(), to.subspan(begin).begin());
    co_await asio::post(io_.context(), asio::use_awaitable);
  }
  co_return to;
}

std::size_t RangeServer::state_bytes() const {
  const std::shared_ptr<Shard>& shard = core_.state().shard();
  return shard ? shard->storage().state_size() * sizeof(float) : 0;
}

asio::awaitable<bool> RangeServer::writer_is_free(const ConnectionPtr& connection,
                                                  std::uint64_t request_id) {
  const std::unique_ptr<Alarm> pause = io_.make_alarm();
  // The chief waits for an answer, and would count this ps as lost without heartbeats.
  auto next_beat = io_.now() + kHeartbeatInterval;
  while (writer_->is_busy() && connection->is_open()) {
    co_await pause->wait_until(io_.now() + kLookAtWriter);
    if (io_.now() >= next_beat) {
      connection->send(net::Heartbeat{.request_id = request_id}.to_header());
      next_beat += kHeartbeatInterval;
    }
  }
  co_return connection->is_open();
}

asio::awaitable<bool> RangeServer::write_snapshot_shard(const ConnectionPtr& connection,
                                                        const FrameHeader& header) {
  std::array<std::byte, net::kBodyBytes<net::WriteSnapshotShard>> body{};
  net::WriteSnapshotShard shard_file;
  net::WriteSnapshotShardRequest request;
  if (const auto error = request.from_header(header)) {
    co_return refuse(connection, header, kError, error.message());
  }
  if (header.body_size != body.size()) {
    co_return refuse(connection, header, kError, "WRITE_SNAPSHOT_SHARD has a body of 16 bytes");
  }
  if (co_await connection->read_body(body, task_.timeouts.heartbeat_timeout)) {
    co_return false;
  }
  // The body names the shard, so that a chief with another list of ps cannot mix up the files.
  const bool is_ours = !net::decode(body, shard_file) &&
                       shard_file.shard == core_.state().index() &&
                       shard_file.shards == task_.cluster.ps.size();
  if (!is_ours) {
    co_return refuse(connection, header, kError,
                     describe(task_.cluster, task_.self) + " writes its own range only");
  }
  // The ps may still write a file that a chief requested before it died. It finishes that file
  // first: to refuse its successor's request would cost the run its last checkpoint.
  std::shared_ptr<const SnapshotShard> snapshot;
  do {
    if (!co_await writer_is_free(connection, header.request_id)) {
      co_return false;
    }
    snapshot = co_await whole_snapshot(*connection, request.name, request.generation);
  } while (snapshot && writer_->is_busy());  // another request began to write meanwhile
  if (!snapshot) {
    connection->send(net::Ack{header.request_id}.to_header());
    co_return true;
  }
  // Shared with the writing thread: the connection may close before the file is written.
  auto writing = std::make_shared<Writing>(io_);
  writing->snapshot = snapshot;
  auto why_not = writer_->start(
      {.id = {.step = request.step, .attempt = shard_file.attempt},
       .shard = shard_file.shard,
       .shards = shard_file.shards,
       .snapshot = std::move(snapshot),
       .range = core_.state().shard()->range(),
       .optimizer = core_.state().shard()->storage().state_names(),
       .layout = math::layout_of(core_.state().shard()->config().model)},
      // Posted, so that the timer is never destroyed on the writing thread.
      [this, writing](ShardFileWriter::Result result) mutable {
        writing->result = std::move(result);
        writing->has_result = true;
        asio::post(io_.context(),
                   [writing = std::move(writing)]() mutable { writing->done->wake(); });
      });
  if (why_not) {
    writing->result = std::move(*why_not);
    writing->has_result = true;
  }
  // Heartbeats go out meanwhile, and the connection is checked. If the chief has hung up, the file
  // belongs to no checkpoint.
  // The flag is read, and not the timer's error: the result may come before the wait begins.
  while (!writing->has_result && connection->is_open()) {
    co_await writing->done->wait_until(io_.now() + kHeartbeatInterval);
    if (!writing->has_result) {
      connection->send(net::Heartbeat{.request_id = header.request_id}.to_header());
    }
  }
  // The chief has hung up. The thread goes on writing, and holds `writing` until it is done.
  if (!writing->has_result) {
    co_return false;
  }
  const auto* file = std::get_if<ShardFile>(&writing->result);
  if (file == nullptr) {
    io_.log({.level = Note::Level::kWarning,
             .text = "could not write the range of step " + std::to_string(request.step) + ": " +
                     std::get<std::string>(writing->result)});
  }
  connection->send(
      file != nullptr ? net::Written{header.request_id}.to_header()
                      : net::NotWritten{header.request_id}.to_header(),
      bytes_of(file != nullptr ? to_json(*file) : std::get<std::string>(writing->result)));
  co_return true;
}

}  // namespace disttf::roles
