#include "roles/chief/core/failover_controller.h"

#include <algorithm>
#include <random>
#include <utility>

#include "net/wire/messages.h"

namespace disttf::roles {

using net::FrameKind;

FailoverController::FailoverController(const Task& task, std::uint64_t seed, TimePoint now)
    : task_(task), next_beat_(now + kHeartbeatInterval) {
  const std::size_t ranges = task.cluster.ps.size();
  services_.resize(ranges, ViewService(task.incarnation));
  told_.resize(ranges);
  // Hosts that were lost together are not dialed together, so each has pauses of its own.
  std::mt19937_64 seeds(seed);
  for (HostNumber host = 0; host < 2 * ranges; ++host) {
    hosts_.push_back({.backoff = net::Backoff(std::mt19937_64(seeds()))});
    effects_.add(DialHost{host});
  }
}

void FailoverController::reached(HostNumber host, TimePoint /*now*/) {
  hosts_[host].connected = true;
  hosts_[host].was_connected = true;
  hosts_[host].finished = false;  // it may be a new process
  // tell() holds views back while a host refuses, so they are sent now.
  if (std::exchange(hosts_[host].refuses, false)) {
    for (std::size_t range = 0; range < services_.size(); ++range) {
      tell(range);
    }
  }
  if (finishing_) {
    send_end(host);
  }
}

void FailoverController::not_reached(HostNumber host, TimePoint now) {
  if (finishing_ && has_ended(ps_of(host))) {
    // The process ends as soon as all that it was notified of is over.
    hosts_[host].finished = true;
  }
  dial_later(hosts_[host], now);
}

void FailoverController::heard(HostNumber host, const net::Report& report) {
  hosts_[host].backoff.reset();  // not sooner: a host may hang up right after the connection
  // A host that has ended stays finished until reached() finds a new process.
  hosts_[host].finished = hosts_[host].finished || report.finished;
  is_run_over_ = is_run_over_ || report.finished;
  ViewService& service = services_[range_of(host)];
  service.record_report(replica_of(host), report);
  // A view of a higher incarnation proves that another process of this chief exists.
  replaced_by_ = std::max(replaced_by_, service.replaced_by());
  tell(range_of(host));
  // Whatever was decided, this host may not have received it.
  if (const auto& view = service.view();
      view && report.view < view->number && replaced_by_ == 0 && !is_refused()) {
    send_view(host, *view);
  }
}

void FailoverController::closed(HostNumber host, TimePoint now) {
  hosts_[host].connected = false;
  // No further wait: reading the channel has a heartbeat timeout already.
  services_[range_of(host)].lose(replica_of(host));
  tell(range_of(host));
  dial_later(hosts_[host], now);
}

void FailoverController::refused(HostNumber host, std::uint64_t by) noexcept {
  replaced_by_ = std::max(replaced_by_, by);
  // A host that had welcomed this chief and now refuses it has seen the other one later.
  is_overtaken_ = is_overtaken_ || (by != 0 && hosts_[host].was_connected);
}

void FailoverController::finish() {
  finishing_ = true;
  for (HostNumber host = 0; host < hosts_.size(); ++host) {
    send_end(host);
  }
}

void FailoverController::time(TimePoint now) {
  // A replaced chief decides nothing, so it dials no host either.
  for (HostNumber host = 0; host < hosts_.size(); ++host) {
    if (hosts_[host].dial_at && *hosts_[host].dial_at <= now && replaced_by_ == 0) {
      hosts_[host].dial_at.reset();
      effects_.add(DialHost{host});
    }
  }
  if (now < next_beat_) {
    return;
  }
  next_beat_ = now + kHeartbeatInterval;
  for (HostNumber host = 0; host < hosts_.size(); ++host) {
    if (hosts_[host].connected) {
      // A host counts a chief without heartbeats as lost.
      effects_.add(SendToHost{.host = host, .header = net::Heartbeat{}.to_header(), .body = {}});
    }
  }
}

FailoverController::TimePoint FailoverController::deadline() const {
  TimePoint next = next_beat_;
  // Without dials only heartbeats are left to wait for.
  if (replaced_by_ != 0) {
    return next;
  }
  for (const Host& host : hosts_) {
    next = std::min(next, host.dial_at.value_or(next));
  }
  return next;
}

bool FailoverController::is_refused() const { return std::ranges::any_of(hosts_, &Host::refuses); }

bool FailoverController::all_have_views() const {
  return std::ranges::all_of(told_, [](const auto& view) { return view.has_value(); });
}

bool FailoverController::has_ended() const {
  return finishing_ && std::ranges::all_of(hosts_, &Host::finished);
}

void FailoverController::dial_later(Host& host, TimePoint now) {
  // At the end of the run, a host that has ended does not come back.
  if (!host.finished || !finishing_) {
    host.dial_at = now + std::min(host.backoff.next(), kLongestDialPause);
  }
}

void FailoverController::tell(std::size_t range) {
  const auto& view = services_[range].view();
  // Only decisions are sent, and none once the run is over or another chief has taken over.
  if (!view || view == told_[range] || finishing_ || replaced_by_ != 0 || is_refused()) {
    return;
  }
  // Recorded even if no host is connected: each host gets the newest view when it reports.
  told_[range] = view;
  effects_.add(Note{
      .text = "range " + std::to_string(range) + ": view " + std::to_string(view->number.count) +
              ", " + describe(task_.cluster, host_of_range(task_.cluster, range, view->primary)) +
              (view->paired ? " with a backup" : " alone") +
              (!view->paired && services_[range].left() ? ": a trainer cannot reach the other host"
                                                        : "")});
  // Both hosts receive it: the old primary must stop, and the new one must begin.
  send_view(2 * range, *view);
  send_view(2 * range + 1, *view);
}

void FailoverController::send_view(HostNumber host, const net::View& view) {
  // A new process must not begin empty in place of a primary whose backup has the state.
  if (hosts_[host].connected && services_[range_of(host)].may_be_told(replica_of(host))) {
    effects_.add(SendToHost{
        .host = host, .header = net::ViewFrame{}.to_header(), .body = net::encode(view)});
  }
}

void FailoverController::send_end(HostNumber host) {
  // A host that has ended closes its channels by itself.
  if (hosts_[host].connected && !hosts_[host].finished) {
    effects_.add(SendToHost{.host = host, .header = net::Shutdown{}.to_header(), .body = {}});
  }
}

net::TaskId FailoverController::ps_of(HostNumber host) const {
  return host_of_range(task_.cluster, range_of(host), replica_of(host));
}

bool FailoverController::has_ended(const net::TaskId& ps) const {
  for (HostNumber host = 0; host < hosts_.size(); ++host) {
    if (hosts_[host].finished && ps_of(host) == ps) {
      return true;
    }
  }
  return false;
}

}  // namespace disttf::roles
