// What a ps knows of each trainer: its connections, its outstanding request, when it was last
// heard.
//
// No socket is touched here but to close or refuse a connection. Not thread-safe: the ps's one
// thread owns it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/server.h"
#include "net/shared_memory.h"
#include "roles/task.h"

namespace disttf::roles {

using Clock = std::chrono::steady_clock;
using Connection = std::shared_ptr<net::ServerConnection>;

// A request that cannot be answered yet.
struct WaitingRequest {
  Connection connection;
  net::FrameHeader header;
  std::uint64_t log_index = 0;  // replicas: what the backup must have before this is answered
};

struct TrainerRecord {
  Connection step;                         // the computing thread's channel; null when it has none
  Connection control;                      // the heartbeats'
  std::uint64_t incarnation = 0;           // of the process that is this trainer now
  std::uint64_t replaced_incarnation = 0;  // of the one before: fenced off when it wakes up
  // Where that process's gradients lie, from the beginning on; null: in its frames.
  std::shared_ptr<const net::SharedView> gradient;
  // In that memory: where it says whether it sleeps; 0: nowhere, and it takes answers from frames.
  std::uint64_t sleep_word = 0;
  bool joined = false;   // has been seen at least once
  bool goodbye = false;  // has left for good
  Clock::time_point last_heard{};
  Clock::time_point absent_since{};  // while it has no connection at all: since when
  std::optional<WaitingRequest> waiting;
  std::size_t owed = 0;  // elastic: micro-batches that it was asked for while it waited

  void unshare() noexcept {
    gradient.reset();
    sleep_word = 0;
  }
  // It can be sent parameters.
  [[nodiscard]] bool present() const noexcept { return step != nullptr; }
  // Its process lives. Heartbeats come before the step channel: it may be loading its data still.
  [[nodiscard]] bool alive() const noexcept { return step != nullptr || control != nullptr; }
};

// A trainer that has been away for longer than its timeout.
struct Absence {
  std::size_t rank = 0;
  std::chrono::seconds limit{0};
  bool joined = false;  // lost, rather than never seen
};

class TrainerTable {
 public:
  // `now`: when the ps began to wait for everybody.
  TrainerTable(const Task& task, Clock::time_point now);

  [[nodiscard]] std::size_t size() const noexcept { return records_.size(); }
  [[nodiscard]] TrainerRecord& operator[](std::size_t rank) { return records_[rank]; }
  [[nodiscard]] std::vector<TrainerRecord>& records() noexcept { return records_; }
  [[nodiscard]] const std::vector<TrainerRecord>& records() const noexcept { return records_; }

  // Why this process may not be trainer `rank`, if it may not: it was replaced by a newer one.
  [[nodiscard]] std::optional<std::string> reason_to_refuse(std::size_t rank,
                                                            const net::Hello& hello) const;
  // Takes a welcomed connection in; an older one of the same purpose, and everything of an older
  // process, is closed. True when a step channel makes the trainer present that was not.
  bool attach(std::size_t rank, const Connection& connection, Clock::time_point now);
  // The connection has ended. True when that made the trainer absent.
  bool detach(std::size_t rank, const Connection& connection, Clock::time_point now);

  // Closes the connections of trainers that have been silent for too long; they become absent when
  // their coroutines call detach().
  void close_silent(Clock::time_point now);

  // The absence that has lasted too long, if any, of ranks that `matters` says yes to: the chief
  // after Timeouts::peer, workers after Timeouts::worker, never seen ones after Timeouts::start.
  // A trainer with any connection is not absent; one that has said goodbye is not missed.
  [[nodiscard]] std::optional<Absence> overdue(Clock::time_point now,
                                               const std::vector<bool>& matters) const;

  // No trainer but rank 0 may still want something: each has said goodbye, or has been absent for
  // `grace`. One that has just lost its connection will come back; so may one that was never seen,
  // unless it is not `needed` or only allowed (--max_workers).
  [[nodiscard]] bool only_chief_left(Clock::time_point now, Clock::duration grace,
                                     bool needed) const;

  // Every trainer but rank 0 has said goodbye, or was never seen and is no more than allowed.
  [[nodiscard]] bool everybody_said_goodbye() const;

  // Who has never been seen: "worker 1 (host:port), worker 2 (host:port)".
  [[nodiscard]] std::string never_seen() const;

 private:
  // Is in the lists; others are only allowed to join. REQUIRES: of records_.
  [[nodiscard]] bool is_expected(const TrainerRecord& record) const;

  const Task& task_;
  std::vector<TrainerRecord> records_;  // by rank
};

}  // namespace disttf::roles
