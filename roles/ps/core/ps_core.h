// The decisions of a ps as a process: which ranges it hosts, the answer to a HELLO, frames on
// control channels, when the run has failed, signals, and how the process ends. What a range
// answers is in range_replica.h.
//
//  serving -> over: each range's part of the run is over -> last frames are sent -> 0, or idle
//         \-> failed: a peer was disconnected for too long, ... -> peers notified -> 138, ...
//          \-> left: only this process ends; the run goes on with its replacement
//
// A state machine, like the ranges. Its calls report events with their time. After each call (but
// for queries) drain() takes the effects, those of the process and those of its ranges.
//
// Not thread-safe: the ps's only thread owns it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "roles/ps/core/connection_map.h"
#include "roles/ps/core/outbox.h"
#include "roles/ps/core/process_order.h"
#include "roles/ps/core/range_replica.h"
#include "roles/ps/core/telemetry_relay.h"
#include "run/effects.h"
#include "run/monitor/core/task_metrics.h"
#include "run/outcome.h"
#include "run/task.h"

namespace disttf::roles {

// The interval of time(): fine enough for timeouts given in seconds.
inline constexpr std::chrono::milliseconds kWatchInterval{100};
// The time for the last frames to be sent when the process is about to end.
inline constexpr std::chrono::milliseconds kDrainTimeout{500};

// Stop listening: a task that connects from now on is to find the next process at this address.
struct ClosePort {};

// Call PsCore::drained() when the frames of all DrainConnections have been sent, or after
// kDrainTimeout; but not before `at_least`, so that peers have time to read what they were sent.
struct AwaitDrained {
  std::chrono::milliseconds at_least{0};
};

// The run is over, and the process stays (--on_finish=idle).
struct StayIdle {};

// Send the chief this ps's metrics and those received from trainers: take_metrics(), as
// METRICS_REPLY.
struct AnswerMetrics {
  ConnectionId to = 0;
  std::uint64_t request_id = 0;
};

// Send a trainer the window of steps to trace, as TRACE.
struct SendTrace {
  ConnectionId to = 0;
  StepWindow window;
};

// End the process with this code. `sentence` says why, unless the code is kDone.
struct EndProcess {
  ExitCode code = kDone;
  std::string sentence = {};
};

class PsCore {
 public:
  // `task` must outlive it. `make_arena`: as RangeReplica's, for range `replica`; may be empty.
  // `threads`: how many may compute an update. `now`: when it begins to wait for all trainers.
  using MakeArena =
      std::function<Arena(std::uint8_t replica, const RunConfig& config, math::Range range)>;
  PsCore(const Task& task, std::size_t threads, MakeArena make_arena, Clock::time_point now);

  // --- connections

  // Returns the answer to a HELLO of this cluster. A trainer's process that is welcomed replaces
  // the older ones at once, at all ranges. The exception is a newer process of the chief while the
  // chief leads a run without replicas here: it is a candidate, since its configuration may be the
  // wrong one. It replaces the chief when its PUBLISH is accepted, or when the chief has gone.
  [[nodiscard]] std::variant<net::Welcome, net::Refusal> welcome(const net::Hello& hello,
                                                                 Clock::time_point now);
  // The peer has been welcomed. `peer`: its name in messages. Returns what to read from it: nothing
  // (this core did not register it), frames, or requests for snapshot shards. The range answers the
  // latter with find_snapshot() and kept_snapshot().
  enum class Reads : std::uint8_t { kNothing, kFrames, kSnapshots };
  [[nodiscard]] Reads connected(ConnectionId id, const net::Hello& hello, const std::string& peer,
                                Clock::time_point now);
  // The other host of range `replica` was reached over a replica channel, after may_fill().
  void reached(std::uint8_t replica, ConnectionId id, Clock::time_point now);
  // As RangeReplica::gave().
  void gave(std::uint8_t replica, ConnectionId to, ReplicationLog::Index entry,
            Clock::time_point now) {
    ranges_[replica]->gave(to, entry, now);
    check_ranges();
  }
  // As RangeReplica's, for any connection from which frames are read. (A shell may call those of
  // PushReceiver for a push: no other part of this core is concerned.)
  BodyPlan header(ConnectionId id, const net::FrameHeader& header, Clock::time_point now,
                  const net::BodyInPlace& in_place = {});
  BodyPlan body(ConnectionId id, Clock::time_point now);
  void closed(ConnectionId id, Clock::time_point now);

  // --- time

  // `missed`: how much of the time until now this process was suspended.
  void forgive(Clock::duration missed, Clock::time_point now);
  // To be called every kWatchInterval, until has_ended().
  void time(Clock::time_point now);

  // --- the end

  // A signal, SIGINT or SIGTERM, arrived; `code` is its exit code.
  void stop(ExitCode code, const std::string& signal, Clock::time_point now);
  // This process cannot go on; the run has failed.
  void broke(const std::string& why);
  // The connections have been drained, as AwaitDrained asked.
  void drained();
  // Returns whether the process is about to end, or is idle; time() has no effect then.
  [[nodiscard]] bool has_ended() const noexcept { return ended_; }

  // --- telemetry

  // Returns the metrics of the range that this ps serves, its own first.
  [[nodiscard]] PsMetrics take_metrics();
  // The metrics of trainers.
  [[nodiscard]] TelemetryRelay& relay() noexcept { return relay_; }
  // Returns whether the last call made a step whose time is measured; clock() is then to be called
  // with the time of its end. (A core has only the time at the beginning of a call.)
  [[nodiscard]] bool awaits_clock() const noexcept;
  void clock(Clock::time_point now);

  // --- queries

  // Returns whether the last gradient of a step is about to arrive at one of the ranges.
  [[nodiscard]] bool expects_gradient() const noexcept;
  // Returns whether answers wait for the other host's acknowledgement of the newest step.
  [[nodiscard]] bool expects_ack() const noexcept;
  // Range 0 is its own; 1 is that of the preceding ps, once a HELLO has named it (--ps_replicas 2).
  [[nodiscard]] std::size_t range_count() const noexcept { return ranges_.size(); }
  [[nodiscard]] RangeReplica& range(std::size_t replica) const { return *ranges_[replica]; }

  // Hands out the effects and empties the outboxes: own(effect) first, then of_range(replica,
  // effect), each range's in order. (So the port is closed before any peer can receive the reason
  // of the failure.)
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
    bool is_fenced = false;     // of a replaced process: its frames are ignored
    bool is_candidate = false;  // of a process that is not the chief yet
    TelemetryRelay::Incoming incoming = {};
  };

  [[nodiscard]] std::string self_text() const { return describe(task_.cluster, task_.self); }
  void add_range(Clock::time_point now);
  // See RunStart::leave_views_with().
  bool leave_views();
  // Returns the range that a HELLO names; makes it if it does not exist.
  RangeReplica& range_of(const net::Hello& hello, Clock::time_point now);
  // Closes the connections of replaced processes, and registers those of a candidate that has
  // replaced the chief.
  void fence_replaced(Clock::time_point now);
  void let_candidate_in(Clock::time_point now);
  // Returns whether the sender is to be a candidate.
  [[nodiscard]] bool is_candidate(const net::Hello& hello) const;
  // Without a chief, the newest candidate is the chief.
  void replace_lost_chief(Clock::time_point now);
  [[nodiscard]] bool is_replaced(const net::Hello& hello) const;
  [[nodiscard]] std::string replaced_text(const net::TaskId& trainer) const;
  // Handles a frame on a control channel.
  BodyPlan control(ConnectionId id, Connection& from, const net::FrameHeader& header,
                   Clock::time_point now);
  BodyPlan record_heartbeat(ConnectionId id, const Connection& from, const net::Heartbeat& beat,
                            Clock::time_point now);
  // Keeps a trainer's metrics, and sends the trainer the window of steps to trace, if there is one.
  void metrics_came(ConnectionId id, Connection& from);
  BodyPlan refuse_control(ConnectionId id, const Connection& from, const net::FrameHeader& header);
  // Once the chief has ended the run at one range, it is over for all.
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] bool is_finishing() const;
  // Ends the process when the last range has ended.
  void check_ranges();
  // Ends the run, and sends the trainers the reason.
  void fail(ExitCode code, const std::string& own_sentence, const std::string& peers_sentence);
  // Ends only this process: trainers count it as lost, and wait for its replacement.
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
  TelemetryRelay relay_;
  Clock::time_point next_heartbeat_;
  Clock::time_point now_{};  // of the body under way
  bool ended_ = false;
  bool is_stop_requested_ = false;       // by a signal, after the run
  bool is_idle_ = false;                 // stays after the run, for late trainers
  std::optional<net::Refusal> verdict_;  // the run has failed: the refusal that peers receive
  EndProcess end_;                       // how it ends
};

}  // namespace disttf::roles
