// --ps_replicas 2: watches both hosts of every range, and sends them their views. view_service.h
// chooses the primary; this class decides when to connect to which host, what to send, and when the
// run is over at all of them.
//
// A state machine: its calls report events with their time. It puts effects into effects(), which
// the caller empties after each call. time() is to be called at deadline(). Not thread-safe.
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
#include "run/effects.h"
#include "run/task.h"

namespace disttf::roles {

// Twice the number of a range, plus its replica: 0 its own ps, 1 the next ps.
using HostNumber = std::size_t;

// One attempt to open a view channel to the host; the result is reached() or not_reached().
struct DialHost {
  HostNumber host = 0;
};
// A frame for a host whose channel is open.
struct SendToHost {
  HostNumber host = 0;
  net::FrameHeader header;
  std::vector<std::byte> body;
};

class FailoverController {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Effects = EffectQueue<DialHost, SendToHost, Note>;

  // `task` must outlive it; its incarnation is the chief's. `seed`: of the pauses between two
  // attempts, different in each process. Starts by connecting to every host.
  FailoverController(const Task& task, std::uint64_t seed, TimePoint now);

  void reached(HostNumber host, TimePoint now);
  void not_reached(HostNumber host, TimePoint now);
  void heard(HostNumber host, const net::Report& report);
  // The host's channel is closed: it broke, its heartbeat timeout expired, or it sent an invalid
  // frame.
  void closed(HostNumber host, TimePoint now);
  // A host refuses this process, since the process with incarnation `by` is its chief. Nothing is
  // decided or sent any more.
  void refused(HostNumber host, std::uint64_t by) noexcept;
  // A host refuses this chief's request: its run has no replicas, or another configuration. The
  // chief is about to end because of that, so no views are sent to other hosts. If the process that
  // refuses dies first, the views are sent once its replacement is reached.
  void refused_for_good(HostNumber host) noexcept { hosts_[host].refuses = true; }
  // The run is over: notifies every host that has not ended, including those that come back.
  void finish();

  void time(TimePoint now);
  [[nodiscard]] TimePoint deadline() const;

  // Returns whether a host has reported the end of the run: the previous chief was lost while it
  // notified the hosts. No chief makes a view of that host's range any more.
  [[nodiscard]] bool is_run_over() const noexcept { return is_run_over_; }
  // Returns whether every range has a primary.
  [[nodiscard]] bool all_have_views() const;
  // Returns the highest incarnation of another chief above this one's that a host has recorded; 0:
  // none.
  [[nodiscard]] std::uint64_t replaced_by() const noexcept { return replaced_by_; }
  // Returns whether a host that refuses this chief had welcomed it before: the other chief came
  // later. Otherwise a chief that is still starting may be the newer of the two, with a clock that
  // is behind. (Two starting chiefs would otherwise take incarnations above each other's forever.)
  [[nodiscard]] bool is_overtaken() const noexcept { return is_overtaken_; }
  // Returns whether every host has reported the end of the run, or its process has gone after it
  // reported that for its other range. REQUIRES: finish() was called.
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
    bool finished = false;  // has reported the end of the run, or counts as having done so
    bool refuses = false;   // this chief, for good
    std::optional<TimePoint> dial_at = {};  // nullopt: connected, connecting, or not needed
    net::Backoff backoff;
  };

  void dial_later(Host& host, TimePoint now);
  // Sends a new view to both hosts of the range.
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
