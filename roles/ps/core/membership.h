// What a ps has recorded about each trainer: its connections, its outstanding request, and when its
// last heartbeat arrived; hence which trainers are present and which have been gone too long.
// (process_order.h decides which process of a trainer is the current one.)
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "net/wire/handshake.h"
#include "net/wire/messages.h"
#include "roles/ps/core/outbox.h"
#include "run/task.h"

namespace disttf::roles {

using Clock = std::chrono::steady_clock;  // the caller of a core passes the time in

// A request that cannot be answered yet.
struct WaitingRequest {
  ConnectionId connection = 0;
  net::TrainerRequest request;
  std::uint64_t log_index = 0;  // replicas: the entry that the backup must have before the answer

  [[nodiscard]] std::uint64_t id() const { return net::header_of(request).request_id; }
  template <typename Request>
  [[nodiscard]] bool is() const noexcept {
    return std::holds_alternative<Request>(request);
  }
};

struct TrainerRecord {
  ConnectionId step = 0;          // the step channel, used by the computing thread
  ConnectionId control = 0;       // the control channel, which carries heartbeats
  std::uint64_t incarnation = 0;  // of the trainer's current process
  bool joined = false;            // has connected at least once
  // The current process was refused after it had connected. When it has gone, the values from
  // before it connected (below) apply again.
  bool is_disowned = false;
  bool had_joined = false;
  Clock::time_point was_disconnected_since{};
  // The trainer's name in messages, while it has joined and has not been lost since. A trainer that
  // rejoins the run closes its step channel and opens another one; that is not a loss.
  std::string name = {};
  bool done = false;  // has sent GOODBYE: it has its result, and waits for the end of the run
  Clock::time_point last_received{};
  Clock::time_point
      disconnected_since{};  // when its last connection closed; valid while it has none
  // When it began, and when it last tried, to connect to this host although this is a backup.
  Clock::time_point redirected_since{};
  Clock::time_point last_redirected{};
  std::optional<WaitingRequest> waiting;
  // Peer discovery: where this leader of a host group is found, as it reported over `connection`,
  // its step channel at that time.
  struct Discovery {
    ConnectionId connection = 0;
    std::uint64_t listener_name = 0;
    std::uint64_t token = 0;
  };
  Discovery discovery = {};
  // Parameters were sent on `step`, and nothing has arrived there since: they may still be leaving.
  struct Answered {
    std::uint64_t restores = 0;  // the number of restores begun by then, which identifies the state
    std::uint64_t step = 0;      // the step of that state
  };
  std::optional<Answered> answered;

  // Returns whether it can be sent parameters.
  [[nodiscard]] bool present() const noexcept { return step != 0; }
  // Returns whether its process is alive. Heartbeats start before the step channel: the trainer may
  // still be loading its data.
  [[nodiscard]] bool alive() const noexcept { return step != 0 || control != 0; }
};

// A trainer that has been disconnected for longer than its timeout.
struct OverdueTrainer {
  std::size_t rank = 0;
  std::chrono::seconds limit{0};
  bool joined = false;  // false: it has never connected
};

class Membership {
 public:
  // `now`: when the ps began to wait for all trainers.
  Membership(const Task& task, Clock::time_point now);

  [[nodiscard]] std::size_t size() const noexcept { return records_.size(); }
  [[nodiscard]] TrainerRecord& operator[](std::size_t rank) { return records_[rank]; }
  [[nodiscard]] const TrainerRecord& operator[](std::size_t rank) const { return records_[rank]; }
  [[nodiscard]] std::vector<TrainerRecord>& records() noexcept { return records_; }
  [[nodiscard]] const std::vector<TrainerRecord>& records() const noexcept { return records_; }

  // Returns how many trainers can be sent parameters.
  [[nodiscard]] std::size_t present() const noexcept { return present_; }

  // Registers a welcomed connection. Closes an older connection of the same purpose, and all
  // connections of an older process. Returns true when a step channel makes a disconnected
  // trainer present.
  bool attach(std::size_t rank, ConnectionId connection, const net::Hello& hello,
              Clock::time_point now, Outbox& out);
  // The connection has ended. Returns true when that made the trainer absent.
  bool detach(std::size_t rank, ConnectionId connection, Clock::time_point now);

  // The trainer's current process is refused for what it requests, and counts as if it had never
  // connected. Otherwise a chief that is restarted again and again with wrong flags would keep the
  // other tasks waiting.
  void disown(std::size_t rank) noexcept { records_[rank].is_disowned = true; }

  // This process was suspended for `missed`, until a moment ago. That time does not count toward
  // any timeout.
  void forgive(Clock::time_point now, Clock::duration missed);

  // Closes the connections of trainers whose heartbeat timeout has expired. They become absent with
  // detach().
  void close_timed_out(Clock::time_point now, Outbox& out) const;
  // Closes the connections of all trainers.
  void close_all(Outbox& out) const;
  // Closes the step channels of all trainers, and drops the requests that wait on them.
  void close_steps(Outbox& out);

  // Sets of ranks, for a Report. unreachable_trainers(): trainers that had joined and have been
  // disconnected for longer than `longer_than`. redirected_clients(): trainers that have tried this
  // host more than once and still do.
  [[nodiscard]] std::uint64_t unreachable_trainers(Clock::time_point now,
                                                   Clock::duration longer_than) const;
  [[nodiscard]] std::uint64_t redirected_clients(Clock::time_point now) const;
  void redirected(std::size_t rank, Clock::time_point now);

  // Sets how many trainers a step cannot be made without: at first all; 0 if no step is to be made.
  // To be called whenever this number, or who is present, may have changed.
  void need(std::size_t least, Clock::time_point now);
  // Returns the trainer that has been disconnected for too long, if any. The limits are
  // Timeouts::peer for the chief, Timeouts::worker for workers, and Timeouts::start for trainers
  // that have never connected. A trainer with any connection is not disconnected; a worker that is
  // done does not count.
  //
  // The chief always counts, workers only while fewer are present than needed. A step that does not
  // need all workers may go on for long after one has left for good, so a worker's time counts only
  // from when too few were present.
  [[nodiscard]] std::optional<OverdueTrainer> overdue(Clock::time_point now) const;

  // How long the chief waits, when it has its result, for the other trainers to have theirs.
  struct Patience {
    Clock::time_point since;       // when it began to wait
    Clock::duration disconnected;  // for a disconnected one, which may be about to reconnect
    Clock::duration present;       // for a connected one, which computes or is being restored
    bool expects_all = true;       // a listed one that has never connected may still come
  };
  // Returns whether each trainer but rank 0 is done, or has exceeded its time.
  [[nodiscard]] bool others_are_done(Clock::time_point now, const Patience& patience) const;

  // Returns whether no trainer but rank 0 has a connection.
  [[nodiscard]] bool others_have_left() const;

  // The state was replaced: trainers that were done must train again.
  void none_is_done() noexcept;

  // Returns the trainers that have never connected: "worker 1 (host:port), worker 2 (host:port)".
  [[nodiscard]] std::string never_seen() const;

 private:
  // Returns whether the trainer is in the cluster's lists; others may join, but need not. REQUIRES:
  // `record` is one of records_.
  [[nodiscard]] bool is_expected(const TrainerRecord& record) const;

  const Task& task_;
  std::vector<TrainerRecord> records_;  // by rank
  std::size_t present_ = 0;             // number of present trainers
  std::size_t needed_ = records_.size();
  // Since when fewer trainers than `needed_` have been present, if they are.
  std::optional<Clock::time_point> too_few_since_;
};

}  // namespace disttf::roles
