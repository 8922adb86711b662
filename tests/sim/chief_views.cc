// The part of the simulated chief that follows roles/chief/shell/failover_thread.cc: it makes
// views.
#include <chrono>
#include <utility>

#include "tests/sim/chief_process.h"

namespace disttf::sim {

using net::FrameKind;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kViewDialAttempt{2000};

}  // namespace

void ChiefProcess::begin_views() {
  ++views_begun_;
  for (const auto& host : hosts_) {
    close(host->channel);
    host->is_dialed = false;
    host->is_welcomed = false;
  }
  task_of_views_ = task_;
  task_of_views_.incarnation = incarnation_;
  views_.emplace(task_of_views_, world_.draw(Draw::kBackoff, incarnation_, 1), now());
}

void ChiefProcess::took_incarnation() {
  WorkerProcess::took_incarnation();
  if (views_) {
    begin_views();
    act_on_views();
  }
}

void ChiefProcess::act_on_views() {
  struct Apply {
    ChiefProcess& chief;
    void operator()(const roles::DialHost& effect) const {
      chief.hosts_[effect.host]->is_dialed = true;
      chief.wake(*chief.serving_[effect.host]);
    }
    void operator()(roles::SendToHost& effect) const {
      const Host& host = *chief.hosts_[effect.host];
      if (net::View view;
          effect.header.kind == FrameKind::kView && !net::decode(effect.body, view)) {
        chief.checks_.witnesses().tells(chief.task_.incarnation,
                                        chief.views_->range_of(effect.host), view.number);
      }
      if (host.is_welcomed && host.channel.is_open) {
        chief.network_.send(host.channel.id, chief, effect.header, std::move(effect.body));
      }
    }
    void operator()(const roles::Note& effect) const { chief.note(effect.text); }
  };
  views_->effects().drain(Apply{*this});
  if (views_->replaced_by() != 0 && !is_settled_ && !views_->is_overtaken()) {
    reported_incarnation_ = views_->replaced_by();
    wake(*living_);
  } else if (views_->replaced_by() != 0) {
    stop_requested_ = true;
    was_replaced_ = true;
    wake(*living_);
  }
  wake(*views_time_);  // the deadline may have changed
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

// Dials the host again and again. While the channel is open, handles its frames.
Routine<void> ChiefProcess::serve(Fiber& fiber, roles::HostNumber number) {
  Host& host = *hosts_[number];
  const net::TaskId ps =
      roles::host_of_range(task_.cluster, views_->range_of(number), views_->replica_of(number));
  while (true) {
    while (!std::exchange(host.is_dialed, false)) {
      co_await wait(fiber, Time::max());
    }
    const std::uint64_t begun = views_begun_;
    FiberProcess::open(host.channel, fiber, ps.index,
                       {.cluster = {},
                        .from = task_.self,
                        .to = ps,
                        .purpose = net::ChannelPurpose::kView,
                        .replica = views_->replica_of(number),
                        .incarnation = incarnation_});
    const Time deadline = now() + kViewDialAttempt;
    while (host.channel.is_open && !host.channel.has_frame() && now() < deadline) {
      co_await wait(fiber, deadline);
    }
    if (begun != views_begun_) {
      continue;
    }
    std::optional<Frame> answer;
    if (host.channel.has_frame()) {
      answer = take(host.channel);
    }
    host.is_welcomed = answer && answer->header.kind == FrameKind::kWelcome;
    if (!host.is_welcomed) {
      if (answer) {
        read_refusal(number, *answer);
      }
      close(host.channel);
      views_->not_reached(number, now());
      act_on_views();
      continue;
    }
    views_->reached(number, now());
    act_on_views();
    co_await listen(fiber, number);
    if (begun != views_begun_) {
      continue;
    }
    close(host.channel);
    host.is_welcomed = false;
    views_->closed(number, now());
    act_on_views();
  }
}

void ChiefProcess::read_refusal(roles::HostNumber number, const Frame& frame) {
  net::Refusal refusal;
  if (frame.header.kind == FrameKind::kRefused && !net::decode(frame.body, refusal)) {
    views_->refused(number, refusal.replaced_by);
    if (refusal.exit_code == roles::kUsage) {
      views_->refused_for_good(number);
    }
  }
}

Routine<void> ChiefProcess::listen(Fiber& fiber, roles::HostNumber number) {
  Channel& channel = hosts_[number]->channel;
  while (true) {
    const Time times_out_at = now() + task_.timeouts.heartbeat_timeout;
    while (channel.is_open && !channel.has_frame() && now() < times_out_at) {
      co_await wait(fiber, times_out_at);
    }
    if (!channel.has_frame()) {
      co_return;
    }
    const Frame frame = take(channel);
    if (frame.header.kind == FrameKind::kRefused) {
      read_refusal(number, frame);
      co_return;
    }
    net::Report report;
    if (frame.header.kind != FrameKind::kReport || net::decode(frame.body, report)) {
      co_return;
    }
    if (world_.traces()) {
      note("receives a report of range " + std::to_string(views_->range_of(number)) + ", replica " +
           std::to_string(views_->replica_of(number)) + ": view " +
           std::to_string(report.view.count) + ", replica role " +
           std::to_string(static_cast<int>(report.replica_role)) + (report.holds ? ", holds" : "") +
           (report.wants_alone ? ", wants alone" : "") + (report.wants_pair ? ", wants pair" : "") +
           (report.finished ? ", finished" : ""));
    }
    checks_.witnesses().hears(task_.incarnation, views_->range_of(number), report.view);
    views_->heard(number, report);
    act_on_views();
  }
}

}  // namespace disttf::sim
