// What a ps knows of each trainer: its connections, its outstanding request, when it was last
// heard; so, who of them is there, and who is missed. (Which process of a trainer may speak for it
// is process_order.h.)
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
#include "roles/run/task.h"

namespace disttf::roles {

using Clock = std::chrono::steady_clock;  // whoever calls a core says what it shows

// A request that cannot be answered yet.
struct WaitingRequest {
  ConnectionId connection = 0;
  net::TrainerRequest request;
  std::uint64_t log_index = 0;  // replicas: what the backup must have before this is answered

  [[nodiscard]] std::uint64_t id() const { return net::header_of(request).request_id; }
  template <typename Request>
  [[nodiscard]] bool is() const noexcept {
    return std::holds_alternative<Request>(request);
  }
};

struct TrainerRecord {
  ConnectionId step = 0;          // the computing thread's channel
  ConnectionId control = 0;       // the heartbeats'
  std::uint64_t incarnation = 0;  // of the process that is this trainer now
  bool joined = false;            // has been seen at least once
  // The process was refused since: what was true before it came is true again when it has gone.
  bool is_disowned = false;
  bool had_joined = false;
  Clock::time_point was_absent_since{};
  // How messages call it, while it has joined, and has not been lost since. A trainer that joins
  // the run again closes its step channel and opens another one: nobody has been lost.
  std::string name = {};
  bool done = false;  // has said GOODBYE: it has its result, and waits for the end of the run
  Clock::time_point last_heard{};
  Clock::time_point absent_since{};  // while it has no connection at all: since when
  // Asked again and again for a range whose backup this is: from when until when.
  Clock::time_point knocks_since{};
  Clock::time_point knocked{};
  std::optional<WaitingRequest> waiting;
  // Where it leads its host group, as it has said over `connection`, which was its step channel.
  struct Meeting {
    ConnectionId connection = 0;
    std::uint64_t rendezvous = 0;
    std::uint64_t token = 0;
  };
  Meeting meeting = {};
  // Parameters were sent on `step`, and nothing has come there since, so they may be leaving still.
  struct Answered {
    std::uint64_t restores = 0;  // that had begun: which state they are of
    std::uint64_t step = 0;      // and which step of it
  };
  std::optional<Answered> answered;

  // It can be sent parameters.
  [[nodiscard]] bool present() const noexcept { return step != 0; }
  // Its process lives. Heartbeats come before the step channel: it may be loading its data still.
  [[nodiscard]] bool alive() const noexcept { return step != 0 || control != 0; }
};

// A trainer that has been away for longer than its timeout.
struct Absence {
  std::size_t rank = 0;
  std::chrono::seconds limit{0};
  bool joined = false;  // lost, rather than never seen
};

class Membership {
 public:
  // `now`: when the ps began to wait for everybody.
  Membership(const Task& task, Clock::time_point now);

  [[nodiscard]] std::size_t size() const noexcept { return records_.size(); }
  [[nodiscard]] TrainerRecord& operator[](std::size_t rank) { return records_[rank]; }
  [[nodiscard]] const TrainerRecord& operator[](std::size_t rank) const { return records_[rank]; }
  [[nodiscard]] std::vector<TrainerRecord>& records() noexcept { return records_; }
  [[nodiscard]] const std::vector<TrainerRecord>& records() const noexcept { return records_; }

  // How many can be sent parameters.
  [[nodiscard]] std::size_t present() const noexcept { return present_; }

  // Takes a welcomed connection in; an older one of the same purpose, and everything of an older
  // process, is closed. True when a step channel makes the trainer present that was not.
  bool attach(std::size_t rank, ConnectionId connection, const net::Hello& hello,
              Clock::time_point now, Outbox& out);
  // The connection has ended. True when that made the trainer absent.
  bool detach(std::size_t rank, ConnectionId connection, Clock::time_point now);

  // The process that is this trainer now is refused for what it wants: it has not been here. A
  // chief that is started again and again with the wrong flags keeps nobody waiting.
  void disown(std::size_t rank) noexcept { records_[rank].is_disowned = true; }

  // This process did not run for so long, until a moment ago: nobody was silent or away meanwhile.
  void forgive(Clock::time_point now, Clock::duration missed);

  // Closes the connections of trainers that have been silent for too long; they become absent with
  // detach().
  void close_silent(Clock::time_point now, Outbox& out) const;
  // The same of all.
  void close_all(Outbox& out) const;
  // Closes the step channels of all: nobody waits for an answer over them.
  void close_steps(Outbox& out);

  // Sets of ranks, as a Report has them. Those that were here and have been absent for longer than
  // that; those that have knocked more than once and are at it still.
  [[nodiscard]] std::uint64_t lacked(Clock::time_point now, Clock::duration longer_than) const;
  [[nodiscard]] std::uint64_t knocking(Clock::time_point now) const;
  void knock(std::size_t rank, Clock::time_point now);

  // How many trainers a step cannot be made without: all, at the beginning; 0, none is to be made.
  // To be told again whenever that, or who is present, may have changed.
  void need(std::size_t least, Clock::time_point now);
  // The absence that has lasted too long, if any: the chief's after Timeouts::peer, workers' after
  // Timeouts::worker, that of never seen ones after Timeouts::start. A trainer with any connection
  // is not absent; a worker that is done is not missed.
  //
  // The chief always matters, workers while fewer are present than are needed. Where a step can do
  // without some, such a one may have left long ago, for good: that too few are here counts from
  // when they were.
  [[nodiscard]] std::optional<Absence> overdue(Clock::time_point now) const;

  // How long the chief, when it has its result, waits for the others to have theirs.
  struct Patience {
    Clock::time_point since;  // when it began to wait
    Clock::duration absent;   // for one without a connection: it may be about to come back
    Clock::duration present;  // for one that is there, and computes or is being restored
    bool expects_all = true;  // one in the lists that was never seen may still come
  };
  // Whether no trainer but rank 0 is waited for any more: each is done, or has had its time.
  [[nodiscard]] bool others_are_done(Clock::time_point now, const Patience& patience) const;

  // Whether no trainer but rank 0 has any connection left.
  [[nodiscard]] bool others_have_left() const;

  // What was done is to be done again: the state was replaced.
  void nobody_is_done() noexcept;

  // Who has never been seen: "worker 1 (host:port), worker 2 (host:port)".
  [[nodiscard]] std::string never_seen() const;

 private:
  // Is in the lists; others are only allowed to join. REQUIRES: of records_.
  [[nodiscard]] bool is_expected(const TrainerRecord& record) const;

  const Task& task_;
  std::vector<TrainerRecord> records_;  // by rank
  std::size_t present_ = 0;             // of them
  std::size_t needed_ = records_.size();
  // There have been fewer present than that: since when.
  std::optional<Clock::time_point> too_few_since_;
};

}  // namespace disttf::roles
