// What a ps decides as a process: which ranges it hosts, what a HELLO is answered, what it hears on
// a control channel, when the run has failed for it, what a signal means, and how it ends. What a
// range answers to whom is range_replica.h.
//
//   serving -> over: each range's part of the run is      -> its last frames leave -> 0, or idle
//          \-> failed: a peer was gone for too long, ...  -> all are told          -> 138, ...
//           \-> left: this process alone ends, the run goes on with another one in its place
//
// A state machine, as the ranges are: it is told what has happened, and at what time; the effects,
// its own and its ranges', are taken with drain() after each call (but for queries).
//
// Not thread-safe: the ps's one thread owns it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "roles/monitor/core/task_metrics.h"
#include "roles/ps/core/connection_map.h"
#include "roles/ps/core/outbox.h"
#include "roles/ps/core/process_order.h"
#include "roles/ps/core/range_replica.h"
#include "roles/run/effect_queue.h"
#include "roles/run/outcome.h"
#include "roles/run/task.h"

namespace disttf::roles {

// How often it is to be told the time: fine enough for timeouts given in seconds.
inline constexpr std::chrono::milliseconds kWatchInterval{100};
// For the last frames to leave when the process is about to end.
inline constexpr std::chrono::milliseconds kDrainTimeout{500};

// Nobody is to reach the port any more: whoever comes now is to find the next process in this one's
// place.
struct ClosePort {};

// PsCore::drained() is to be called when the frames of all DrainConnections have left, or
// kDrainTimeout later; and not before `at_least`, for others to see what they were told.
struct AwaitDrained {
  std::chrono::milliseconds at_least{0};
};

// The run is over, and the process stays (--on_finish=idle).
struct StayIdle {};

// The chief is to be told how this ps does, and what trainers have told it: take_metrics(), as
// METRICS_REPLY.
struct AnswerMetrics {
  ConnectionId to = 0;
  std::uint64_t request_id = 0;
};

// A trainer is to be told that these steps are to be told of, as TRACE.
struct SendTrace {
  ConnectionId to = 0;
  StepWindow window;
};

// With this code; unless that is kDone, this sentence says why.
struct EndProcess {
  ExitCode code = kDone;
  std::string sentence = {};
};

class PsCore {
 public:
  // `task` must outlive it. `make_arena`: as RangeReplica's, for its range `replica`; may be empty.
  // `threads`: that may compute an update. `now`: when it begins to wait for everybody.
  using MakeArena =
      std::function<Arena(std::uint8_t replica, const RunConfig& config, math::Range range)>;
  PsCore(const Task& task, std::size_t threads, MakeArena make_arena, Clock::time_point now);

  // --- connections

  // The answer to a HELLO that fits the cluster. A trainer's process that is welcomed has replaced
  // those before it at once, at all ranges.
  [[nodiscard]] std::variant<net::Welcome, net::Refusal> welcome(const net::Hello& hello,
                                                                 Clock::time_point now);
  // It has been welcomed; `peer`: how messages call it. What is to be read from it: nothing, and
  // this core does not know it; frames; or requests for cuts, which its range answers (find_cut(),
  // kept_cut()).
  enum class Reads : std::uint8_t { kNothing, kFrames, kCuts };
  [[nodiscard]] Reads connected(ConnectionId id, const net::Hello& hello, const std::string& peer,
                                Clock::time_point now);
  // The other host of its range `replica` was reached, over a replica channel, after may_fill().
  void reached(std::uint8_t replica, ConnectionId id, Clock::time_point now);
  // As RangeReplica::gave().
  void gave(std::uint8_t replica, ConnectionId to, ReplicationLog::Index entry,
            Clock::time_point now) {
    ranges_[replica]->gave(to, entry, now);
    check_ranges();
  }
  // As RangeReplica's, of any connection from which frames are read.
  BodyPlan header(ConnectionId id, const net::FrameHeader& header, Clock::time_point now,
                  const net::BodyInPlace& in_place = {});
  BodyPlan body(ConnectionId id, Clock::time_point now);
  void closed(ConnectionId id, Clock::time_point now);

  // --- time

  // `missed`: of the time until now, what this process did not see.
  void forgive(Clock::duration missed, Clock::time_point now);
  // Every kWatchInterval, until has_ended().
  void time(Clock::time_point now);

  // --- the end

  // A signal, SIGINT or SIGTERM, whose exit code this is.
  void stop(ExitCode code, const std::string& signal, Clock::time_point now);
  // This process cannot go on: the run has failed.
  void broke(const std::string& why);
  // After AwaitDrained.
  void drained();
  // It is about to end, or idle: time does not matter any more.
  [[nodiscard]] bool has_ended() const noexcept { return ended_; }

  // --- what is told of the run

  // How the range does that this ps serves, its own first; and what trainers have told since the
  // last call, as it came: of each the newest kMostTold.
  static constexpr std::size_t kMostTold = 4;
  [[nodiscard]] PsMetrics take_metrics();
  [[nodiscard]] std::vector<std::string> take_told();
  // The call that has just ended made a step whose time is measured: clock() is to be told when it
  // was done. (A core knows no time but that of the beginning of a call.)
  [[nodiscard]] bool awaits_clock() const noexcept;
  void clock(Clock::time_point now);

  // --- queries

  // The last gradient of a step is about to come to one of the ranges.
  [[nodiscard]] bool expects_gradient() const noexcept;
  // So is the other host's word that it has the newest step, which answers wait for.
  [[nodiscard]] bool expects_ack() const noexcept;
  // Its own range is 0; 1 is that of the ps before it, once a HELLO has meant it (--ps_replicas 2).
  [[nodiscard]] std::size_t range_count() const noexcept { return ranges_.size(); }
  [[nodiscard]] RangeReplica& range(std::size_t replica) const { return *ranges_[replica]; }

  // Hands out what is wanted done, and forgets it: `own(effect)`, then `of_range(replica, effect)`,
  // each range's in its order. (So the port is closed before anybody can know why.)
  template <typename OfRange, typename Own>
  void drain(OfRange of_range, Own own) {
    out_.drain(own);
    for (std::size_t replica = 0; replica < ranges_.size(); ++replica) {
      ranges_[replica]->out().drain([&](auto& effect) { of_range(replica, effect); });
    }
  }

 private:
  struct Connection {
    net::Hello hello;
    std::string peer;
    bool is_fenced = false;  // of a process that was replaced: what it says does not count
    std::string told;        // a trainer's text, while it comes
    std::array<std::span<std::byte>, 1> place = {};  // where
  };

  [[nodiscard]] std::string self_text() const { return describe(task_.cluster, task_.self); }
  void add_range(Clock::time_point now);
  // As RangeReplica::leave_views_with() has it.
  bool leave_views();
  // The range that a HELLO means; made if there was none.
  RangeReplica& range_of(const net::Hello& hello, Clock::time_point now);
  // Closes what processes have that were replaced.
  void fence_replaced();
  [[nodiscard]] bool is_replaced(const net::Hello& hello) const;
  [[nodiscard]] std::string replaced_text(const net::TaskId& trainer) const;
  // A frame on a control channel.
  BodyPlan control(ConnectionId id, Connection& from, const net::FrameHeader& header,
                   Clock::time_point now);
  BodyPlan beat(ConnectionId id, const Connection& from, const net::FrameHeader& header,
                Clock::time_point now);
  BodyPlan hear_metrics(ConnectionId id, Connection& from, const net::FrameHeader& header);
  BodyPlan ask_metrics(ConnectionId id, const Connection& from, const net::FrameHeader& header);
  BodyPlan begin_trace(ConnectionId id, const Connection& from, const net::FrameHeader& header);
  // Remembers what a trainer has told, and tells it what is to be told, if anything.
  void told(ConnectionId id, Connection& from);
  BodyPlan refuse_control(ConnectionId id, const Connection& from, const net::FrameHeader& header);
  // What the chief has said of one range holds for all.
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] bool is_finishing() const;
  // Ends when the last range has.
  void check_ranges();
  // Ends the run: the trainers are told why.
  void fail(ExitCode code, const std::string& own_sentence, const std::string& peers_sentence);
  // Ends this process alone: for trainers it is lost, and they wait for another one in its place.
  void leave(ExitCode code, const std::string& sentence);

  const Task& task_;
  const std::size_t threads_;
  const MakeArena make_arena_;
  ProcessOrder order_;
  EffectQueue<Note, CloseConnection, RefuseConnection, ClosePort, AwaitDrained, StayIdle,
              AnswerMetrics, SendTrace, EndProcess>
      out_;
  std::vector<std::unique_ptr<RangeReplica>> ranges_;
  ConnectionMap<Connection> connections_;
  std::map<std::size_t, std::deque<std::string>> told_;  // by rank, since the last take_told()
  StepWindow window_;                                    // the steps that all are to tell of
  Clock::time_point next_heartbeat_;
  Clock::time_point now_{};  // of the body under way
  bool ended_ = false;
  bool is_told_to_stop_ = false;         // by a signal, after the run
  bool is_idle_ = false;                 // stays after the run, for late trainers
  std::optional<net::Refusal> verdict_;  // the run has failed: what peers are told
  EndProcess end_;                       // how it ends
};

}  // namespace disttf::roles
