// --ps_replicas 2: watches both hosts of every range, and tells them which of them is the primary.
// Who that is, view_service.h decides; this decides who is dialed when, who is told what, and when
// the run is over at all of them.
//
// A state machine: it is told what has happened, and at what time; what it wants done it puts into
// effects(), which whoever calls it empties after each call. It wants to be called with time() at
// deadline(). Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/wire/backoff.h"
#include "net/wire/frame.h"
#include "net/wire/replication.h"
#include "roles/chief/core/view_service.h"
#include "roles/run/effect_queue.h"
#include "roles/run/note.h"
#include "roles/run/task.h"

namespace disttf::roles {

// Twice the number of a range, and its replica: 0 its own ps, 1 the ps after it.
using HostNumber = std::size_t;

// One attempt to open a view channel to the host; reached() or not_reached() tells how it ended.
struct DialHost {
  HostNumber host = 0;
};
// To a host whose channel is open.
struct SendToHost {
  HostNumber host = 0;
  net::FrameHeader header;
  std::vector<std::byte> body;
};

class FailoverController {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Effects = EffectQueue<DialHost, SendToHost, Note>;

  // `task` must outlive it; its incarnation is the one of the chief. `seed` of the pauses between
  // two attempts: another one in each process. Begins by dialing every host.
  FailoverController(const Task& task, std::uint64_t seed, TimePoint now);

  void reached(HostNumber host, TimePoint now);
  void not_reached(HostNumber host, TimePoint now);
  void heard(HostNumber host, const net::Report& report);
  // Its channel is no more: it broke, or the host was silent for too long, or said nonsense.
  void closed(HostNumber host, TimePoint now);
  // A host refuses this process: another one, with that incarnation, is the chief there. Nothing is
  // decided or said any more.
  void refused(HostNumber host, std::uint64_t by) noexcept;
  // A host refuses this chief for what it wants: its run has no replicas, or another configuration.
  // The chief is about to end for that, and other hosts are sent no views of it. Should the process
  // that refuses die first, the views are sent once another one in its place is reached.
  void refused_for_good(HostNumber host) noexcept { hosts_[host].refuses = true; }
  // The run is over: every host is told that has not ended, those that come back too.
  void finish();

  void time(TimePoint now);
  [[nodiscard]] TimePoint deadline() const;

  // A host has said that the run is over: the chief before this one was lost while it told all.
  // Nobody makes a view of that host's range any more.
  [[nodiscard]] bool is_run_over() const noexcept { return is_run_over_; }
  // Every range has a primary.
  [[nodiscard]] bool all_have_views() const;
  // The highest incarnation of another chief, above this one's, that a host knows of; 0: none does.
  [[nodiscard]] std::uint64_t replaced_by() const noexcept { return replaced_by_; }
  // This chief was welcomed where it is refused now: the other one has come there after it. Else a
  // chief that has yet to begin may be the newer of the two, by a clock that is behind. (Two that
  // begin would take incarnations above each other's for ever if neither cared.)
  [[nodiscard]] bool is_overtaken() const noexcept { return is_overtaken_; }
  // REQUIRES: finish() was called. Every host has said that the run is over, or its process, which
  // had said so of its other range, is gone.
  [[nodiscard]] bool has_ended() const;

  [[nodiscard]] std::size_t range_of(HostNumber host) const noexcept { return host / 2; }
  [[nodiscard]] std::uint8_t replica_of(HostNumber host) const noexcept {
    return static_cast<std::uint8_t>(host % 2);
  }
  [[nodiscard]] Effects& effects() noexcept { return effects_; }

 private:
  struct Host {
    bool connected = false;
    bool was_connected = false;
    bool finished = false;                  // has said that the run is over, or is taken to
    bool refuses = false;                   // for good, this chief
    std::optional<TimePoint> dial_at = {};  // nullopt: connected, or being dialed, or not needed
    net::Backoff backoff;
  };

  void dial_later(Host& host, TimePoint now);
  // A new view, to both hosts of the range.
  void tell(std::size_t range);
  void send_view(HostNumber host, const net::View& view);
  void send_end(HostNumber host);
  [[nodiscard]] bool is_refused() const;
  [[nodiscard]] net::TaskId ps_of(HostNumber host) const;
  [[nodiscard]] bool has_ended(const net::TaskId& ps) const;

  const Task& task_;
  std::vector<Host> hosts_;
  std::vector<ViewService> services_;           // by range
  std::vector<std::optional<net::View>> told_;  // by range
  std::uint64_t replaced_by_ = 0;
  bool is_overtaken_ = false;
  bool finishing_ = false;
  bool is_run_over_ = false;
  TimePoint next_beat_;
  Effects effects_;
};

}  // namespace disttf::roles
