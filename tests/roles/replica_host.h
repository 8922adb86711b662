// A host of a range whose shell is the test: connections are numbers, time is virtual, and sent
// frames are kept.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "net/wire/replication.h"
#include "roles/ps/core/range_replica.h"
#include "tests/roles/shard_pushes.h"

namespace disttf::roles {

using Bytes = std::vector<std::byte>;

struct SentFrame {
  net::FrameHeader header;
  Bytes body;
};

// A ps of a cluster with two workers.
inline Task task_of_ps(std::size_t index, std::size_t ps = 1) {
  Task task;
  for (std::size_t each = 0; each < ps; ++each) {
    task.cluster.ps.push_back({.host = "ps" + std::to_string(each), .port = 1});
  }
  task.cluster.workers = {{.host = "w0", .port = 2}, {.host = "w1", .port = 3}};
  task.self = {.job = net::Job::kPs, .index = index};
  task.incarnation = 100 + index;
  task.timeouts = {.start = std::chrono::seconds(300),
                   .peer = std::chrono::seconds(60),
                   .worker = std::chrono::seconds(20),
                   .heartbeat_timeout = std::chrono::seconds(10)};
  return task;
}

// A small run whose parameters are one range. With SGD, rate 1 and start 0, the parameters after a
// step are minus the mean of its gradients.
inline RunConfig small_run(std::uint64_t train_steps = 3) {
  RunConfig config = sgd_config(2, train_steps);
  config.dataset = "MNIST";
  config.data_checksum = "0";
  config.model.kind = math::ModelKind::kSoftmax;
  config.model.input = {.channels = 6};
  config.model.classes = 2;
  return config;
}

class ReplicaHost {
 public:
  using Seconds = std::chrono::seconds;

  // `task` must outlive this object.
  explicit ReplicaHost(const Task& task, std::uint8_t replica = 0)
      : order(task.cluster.trainer_count()),
        core(task, replica, 1, {}, order, kStart),
        task_(task) {}

  ProcessOrder order;
  RangeReplica core;

  // --- events

  // Opens a connection of trainer `rank`, which must be welcomed. Returns 0 if it was welcomed but
  // is not to be read from.
  ConnectionId connect(std::size_t rank, std::uint64_t process,
                       net::ChannelPurpose purpose = net::ChannelPurpose::kStep) {
    return connect({.cluster = {},
                    .from = task_.cluster.trainer(rank),
                    .to = task_.self,
                    .purpose = purpose,
                    .incarnation = process});
  }
  ConnectionId connect(const net::Hello& hello) {
    const auto answer = core.welcome(hello);
    const auto* refusal = std::get_if<net::Refusal>(&answer);
    EXPECT_EQ(refusal, nullptr) << refusal->sentence;
    const ConnectionId id = ++last_;
    const bool is_read = core.connected(id, hello, net::to_string(hello.from), now());
    take_effects();
    return is_read ? id : 0;
  }
  // The other host answers. Returns the connection over which this host fills it.
  ConnectionId connect_to_other() {
    const ConnectionId id = ++last_;
    core.reached(id, now());
    take_effects();
    return id;
  }
  // Delivers a whole frame. Returns false if the connection is of no more use.
  bool say(ConnectionId id, net::FrameHeader header, std::span<const std::byte> body = {}) {
    return deliver(id, begin(id, header, body.size()), body);
  }
  // Delivers only the header. Returns what is to be read next.
  BodyPlan begin(ConnectionId id, net::FrameHeader header, std::size_t body_size) {
    header.body_size = body_size;
    const BodyPlan plan = core.header(id, header, now());
    take_effects();
    return plan;
  }
  // Delivers the body.
  bool deliver(ConnectionId id, BodyPlan plan, std::span<const std::byte> body) {
    while (plan.is_body()) {
      std::size_t bytes = plan.bytes;
      for (const std::span<std::byte> place : plan.places) {
        EXPECT_LE(place.size(), body.size());
        std::ranges::copy(body.first(place.size()), place.begin());
        body = body.subspan(place.size());
      }
      body = body.subspan(bytes);
      plan = core.body(id, now());
      take_effects();
    }
    return plan.next == BodyPlan::Next::kHeader;
  }
  void hang_up(ConnectionId id) {
    core.closed(id, now());
    take_effects();
  }
  // The update of this entry lies in memory from which the other host takes it.
  void gave(ConnectionId to, std::uint64_t entry) {
    core.gave(to, entry, now());
    take_effects();
  }
  // Advances the time second by second, as a shell does.
  void pass(Seconds seconds) {
    for (Seconds each{0}; each < seconds; ++each) {
      now_ += Seconds(1);
      core.close_timed_out(now());
      core.send_heartbeats(now());
      core.check_end(now());
      take_effects();
    }
  }

  // --- what it has done

  [[nodiscard]] Clock::time_point now() const { return now_; }
  // Returns the next frame to that connection that is neither a heartbeat nor a report.
  std::optional<SentFrame> take(ConnectionId id) {
    std::deque<SentFrame>& sent = sent_[id];
    while (!sent.empty()) {
      SentFrame frame = std::move(sent.front());
      sent.pop_front();
      if (frame.header.kind != net::FrameKind::kHeartbeat &&
          frame.header.kind != net::FrameKind::kReport) {
        return frame;
      }
    }
    return std::nullopt;
  }
  // Returns the last report to that connection that was not taken.
  [[nodiscard]] net::Report last_report(ConnectionId id) {
    net::Report report;
    for (const SentFrame& frame : sent_[id]) {
      if (frame.header.kind == net::FrameKind::kReport) {
        EXPECT_FALSE(net::decode(frame.body, report));
      }
    }
    return report;
  }
  [[nodiscard]] bool is_closed(ConnectionId id) const {
    return std::ranges::find(closed_, id) != closed_.end();
  }
  [[nodiscard]] const std::map<ConnectionId, std::string>& refused() const { return refused_; }
  [[nodiscard]] const std::vector<std::string>& log() const { return log_; }
  [[nodiscard]] bool has_ended() const { return core.host().has_ended(); }
  [[nodiscard]] bool connects_to_backup() const { return connects_to_backup_; }

 private:
  static constexpr Clock::time_point kStart{std::chrono::hours(1)};

  void take_effects() {
    core.out().drain([this](const auto& effect) { take_effect(effect); });
  }
  void take_effect(const SendFrame& effect) {
    SentFrame& frame = sent_[effect.to].emplace_back();
    frame = {.header = effect.header, .body = {effect.body.begin(), effect.body.end()}};
    frame.body.insert(frame.body.end(), effect.borrowed.begin(), effect.borrowed.end());
  }
  void take_effect(const CloseConnection& effect) { closed_.push_back(effect.id); }
  void take_effect(const FinishConnection& effect) { closed_.push_back(effect.id); }
  void take_effect(const RefuseConnection& effect) { refused_[effect.id] = effect.sentence; }
  void take_effect(const Note& effect) { log_.push_back(effect.text); }
  void take_effect(const ConnectToBackup&) { connects_to_backup_ = true; }
  void take_effect(const DrainConnections&) {}

  const Task& task_;
  Clock::time_point now_ = kStart;
  ConnectionId last_ = 0;
  std::map<ConnectionId, std::deque<SentFrame>> sent_;
  std::vector<ConnectionId> closed_;
  std::map<ConnectionId, std::string> refused_;
  std::vector<std::string> log_;
  bool connects_to_backup_ = false;
};

}  // namespace disttf::roles
