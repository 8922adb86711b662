// The simulated chief as roles/chief/shell/failover_thread.cc: makes views.
#include <chrono>
#include <utility>

#include "tests/sim/chief_process.h"

namespace disttf::sim {

using net::FrameKind;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kDialAttempt{2000};

}  // namespace

void ChiefProcess::act_on_views() {
  struct Apply {
    ChiefProcess& chief;
    void operator()(const roles::DialHost& order) const {
      chief.hosts_[order.host]->is_dialed = true;
      chief.wake(*chief.serving_[order.host]);
    }
    void operator()(roles::SendToHost& order) const {
      const Host& host = *chief.hosts_[order.host];
      if (host.is_welcomed && host.channel.is_open) {
        chief.network_.send(host.channel.id, chief, order.header, std::move(order.body));
      }
    }
    void operator()(const roles::Note& order) const { chief.note(order.text); }
  };
  views_->effects().drain(Apply{*this});
  wake(*views_time_);  // the deadline may be another one
}

Routine<void> ChiefProcess::keep_views_time(Fiber& fiber) {
  while (true) {
    co_await wait(fiber, views_->deadline());
    if (now() >= views_->deadline()) {
      views_->time(now());
      act_on_views();
    }
  }
}

// One attempt after the other, and what comes over the channel if it is opened.
Routine<void> ChiefProcess::serve(Fiber& fiber, roles::HostNumber number) {
  Host& host = *hosts_[number];
  const net::TaskId ps =
      roles::host_of_range(task_.cluster, views_->range_of(number), views_->replica_of(number));
  while (true) {
    while (!std::exchange(host.is_dialed, false)) {
      co_await wait(fiber, Time::max());
    }
    FiberProcess::open(host.channel, fiber, ps.index,
                       {.cluster = {},
                        .from = task_.self,
                        .to = ps,
                        .purpose = net::ChannelPurpose::kView,
                        .replica = views_->replica_of(number),
                        .incarnation = task_.incarnation});
    const Time deadline = now() + kDialAttempt;
    while (host.channel.is_open && !host.channel.has_frame() && now() < deadline) {
      co_await wait(fiber, deadline);
    }
    host.is_welcomed =
        host.channel.has_frame() && take(host.channel).header.kind == FrameKind::kWelcome;
    if (!host.is_welcomed) {
      close(host.channel);
      views_->not_reached(number, now());
      act_on_views();
      continue;
    }
    views_->reached(number, now());
    act_on_views();
    co_await listen(fiber, number);
    close(host.channel);
    host.is_welcomed = false;
    views_->closed(number, now());
    act_on_views();
  }
}

Routine<void> ChiefProcess::listen(Fiber& fiber, roles::HostNumber number) {
  Channel& channel = hosts_[number]->channel;
  while (true) {
    const Time silent_at = now() + task_.timeouts.silence;
    while (channel.is_open && !channel.has_frame() && now() < silent_at) {
      co_await wait(fiber, silent_at);
    }
    if (!channel.has_frame()) {
      co_return;
    }
    const Frame frame = take(channel);
    net::Report report;
    if (frame.header.kind != FrameKind::kReport || net::decode(frame.body, report)) {
      co_return;
    }
    if (world_.traces()) {
      note("hears of range " + std::to_string(views_->range_of(number)) + ", replica " +
           std::to_string(views_->replica_of(number)) + ": view " + std::to_string(report.view) +
           ", standing " + std::to_string(static_cast<int>(report.standing)) +
           (report.holds ? ", holds" : "") + (report.wants_alone ? ", wants alone" : "") +
           (report.wants_pair ? ", wants pair" : "") + (report.finished ? ", finished" : ""));
    }
    views_->heard(number, report);
    act_on_views();
  }
}

}  // namespace disttf::sim
