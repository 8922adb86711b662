// A ps as a process in virtual time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "math/model.h"
#include "roles/ps/core/ps_core.h"
#include "tests/roles/replica_host.h"

namespace disttf::roles {

// A ps whose shell is the test.
class PsHost {
 public:
  explicit PsHost(const Task& task) : core(task, 1, {}, kStart), task_(task) {}

  PsCore core;

  // --- events

  // Opens a connection of trainer `rank`, which must be welcomed.
  ConnectionId connect(std::size_t rank, std::uint64_t process,
                       net::ChannelPurpose purpose = net::ChannelPurpose::kStep,
                       std::uint8_t replica = 0) {
    return connect(hello_of(rank, process, purpose, replica));
  }
  ConnectionId connect(const net::Hello& hello) {
    const auto answer = core.welcome(hello, now());
    const auto* refusal = std::get_if<net::Refusal>(&answer);
    EXPECT_EQ(refusal, nullptr) << refusal->sentence;
    const ConnectionId id = ++last_;
    reads = core.connected(id, hello, net::to_string(hello.from), now());
    take_effects();
    return id;
  }
  std::optional<net::Refusal> refusal_of(const net::Hello& hello) {
    const auto answer = core.welcome(hello, now());
    take_effects();
    const auto* refusal = std::get_if<net::Refusal>(&answer);
    return refusal != nullptr ? std::optional(*refusal) : std::nullopt;
  }
  std::optional<std::string> why_refused(const net::Hello& hello) {
    const auto refusal = refusal_of(hello);
    return refusal ? std::optional(refusal->sentence) : std::nullopt;
  }
  [[nodiscard]] net::Hello hello_of(std::size_t rank, std::uint64_t process,
                                    net::ChannelPurpose purpose, std::uint8_t replica = 0) const {
    return {.cluster = {},
            .from = task_.cluster.trainer(rank),
            .to = task_.self,
            .purpose = purpose,
            .replica = replica,
            .incarnation = process};
  }
  // Delivers a whole frame. Returns false if nothing more is read from that connection.
  bool say(ConnectionId id, net::FrameHeader header, std::span<const std::byte> body = {}) {
    header.body_size = body.size();
    BodyPlan plan = core.header(id, header, now());
    while (plan.is_body()) {
      for (const std::span<std::byte> place : plan.places) {
        std::ranges::copy(body.first(place.size()), place.begin());
        body = body.subspan(place.size());
      }
      plan = core.body(id, now());
    }
    take_effects();
    return plan.next == BodyPlan::Next::kHeader;
  }
  void hang_up(ConnectionId id) {
    core.closed(id, now());
    take_effects();
  }
  void stop(ExitCode code, const std::string& signal) {
    core.stop(code, signal, now());
    take_effects();
  }
  // The last frames have been sent.
  void drain() {
    core.drained();
    take_effects();
  }
  void pass(std::chrono::milliseconds time) {
    for (std::chrono::milliseconds each{0}; each < time; each += kWatchInterval) {
      now_ += kWatchInterval;
      core.time(now());
      take_effects();
    }
  }
  // Publishes, restores the state after the last step, and ends the run.
  void run_to_the_end(ConnectionId chief, std::size_t replicas = 1) {
    RunConfig config = small_run(1);
    config.ps_replicas = replicas;
    const std::string published = to_json(config);
    say(chief, {.kind = net::FrameKind::kPublish}, std::as_bytes(std::span(published)));
    const Bytes zeros(math::layout_of(config.model).size() * sizeof(float));
    say(chief, {.kind = net::FrameKind::kRestore, .step = 1, .generation = 1}, zeros);
    say(chief, {.kind = net::FrameKind::kShutdown});
    EXPECT_TRUE(refused.empty());
  }

  // --- what it has done

  [[nodiscard]] Clock::time_point now() const { return now_; }
  PsCore::Reads reads = PsCore::Reads::kNothing;  // of the newest connection
  std::map<ConnectionId, std::string> refused;
  // Of the refused connections: the incarnation that replaced theirs.
  std::map<ConnectionId, std::uint64_t> replaced;
  std::set<ConnectionId> closed;
  bool is_closed = false;  // whether its port is closed
  std::optional<AwaitDrained> awaits;
  std::optional<AnswerMetrics> asked;
  std::map<ConnectionId, StepWindow> traces;  // windows that were sent to trainers
  std::map<ConnectionId, std::vector<net::FrameKind>> sent;
  bool is_idle = false;
  std::optional<EndProcess> end;

 private:
  static constexpr Clock::time_point kStart{std::chrono::hours(1)};

  void take_effects() {
    core.drain([this](std::size_t /*replica*/, const auto& effect) { take(effect); },
               [this](const auto& effect) { take(effect); });
  }
  void take(const RefuseConnection& effect) {
    refused[effect.id] = effect.sentence;
    if (effect.replaced_by != 0) {
      replaced[effect.id] = effect.replaced_by;
    }
  }
  void take(const CloseConnection& effect) { closed.insert(effect.id); }
  void take(const ClosePort&) { is_closed = true; }
  void take(const AwaitDrained& effect) { awaits = effect; }
  void take(const StayIdle&) { is_idle = true; }
  void take(const AnswerMetrics& effect) { asked = effect; }
  void take(const SendTrace& effect) { traces[effect.to] = effect.window; }
  void take(const EndProcess& effect) { end = effect; }
  void take(const SendFrame& effect) { sent[effect.to].push_back(effect.header.kind); }
  template <typename Other>
  void take(const Other&) {}

  const Task& task_;
  Clock::time_point now_ = kStart;
  ConnectionId last_ = 0;
};

}  // namespace disttf::roles
