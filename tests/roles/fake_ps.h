// A trainer's core whose shell and whose ps are simulated by the test. The test sets the time,
// links have no delay, and each host of a range answers as a ps in its state would.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "roles/trainer/core/run_session.h"

namespace disttf::roles {

// One host of a range. As a ps, it fences a request that is of another state than its own.
struct FakeHost {
  bool is_up = true;               // otherwise: connection refused
  bool swallows = false;           // drops packets: a dial gets no answer until it times out
  bool is_mute = false;            // receives requests and sends nothing
  bool releases = true;            // answers GOODBYE
  bool talks_nonsense = false;     // sends malformed answers
  bool hangs_up = false;           // as soon as it receives a request
  bool is_ahead = false;           // has this trainer's gradient of the next step already
  bool waits = false;              // without a state: lets a PULL wait for the chief
  std::uint64_t last_step = 1000;  // of the run
  std::uint64_t counts_from = 0;   // the trainer must number its next push above this
  // The host dies when it receives such a request, and another process replaces it.
  std::optional<net::FrameKind> dies_of = {};
  // A protocol violation: the next parameters carry this generation.
  std::optional<net::Generation> misnames = {};
  std::optional<net::Refusal> refuses = {};
  BestEvaluation best = {};
  net::Welcome welcome = {};

  // Another process begins here.
  void restart(std::uint64_t incarnation) {
    welcome = {.incarnation = incarnation, .replica_role = welcome.replica_role};
    best = {};
    is_up = true;
  }
  void hold(std::uint64_t step, net::Generation generation) {
    welcome.state = net::ShardState::kReady;
    welcome.step = step;
    welcome.generation = generation;
  }
};

struct ReceivedRequest {
  std::size_t range = 0;
  std::uint8_t replica = 0;
  net::FrameHeader header;
};

class TrainerWorld {
 public:
  using Outcome = RunSession::Outcome;

  // `task` must outlive this object.
  explicit TrainerWorld(const Task& task)
      : session(task, std::mt19937_64(1)), links_(session.ranges()) {
    for (std::size_t range = 0; range < session.ranges(); ++range) {
      host(range).welcome.incarnation = 100 + range;
    }
  }

  RunSession session;

  [[nodiscard]] FakeHost& host(std::size_t range, std::uint8_t replica = 0) {
    return hosts_[{range, replica}];
  }
  [[nodiscard]] Clock::time_point now() const { return now_; }

  // Continues the operation until only the passing of time can change anything.
  Outcome go_on() {
    do {
      session.out().drain([this](const auto& effect) { apply(effect); });
    } while (deliver());
    return session.outcome();
  }
  // Continues the operation, and advances the time until it has ended, by at most `longest`.
  Outcome go_on_for(Clock::duration longest) {
    const auto end = now_ + longest;
    while (go_on() == Outcome::kUnderWay && now_ < end) {
      Clock::time_point next = std::min(end, session.deadline());
      if (swallowed_) {
        next = std::min(next, swallowed_->until);
      }
      now_ = std::max(now_, next);
      if (swallowed_ && now_ >= swallowed_->until) {
        const Dial dial = *std::exchange(swallowed_, std::nullopt);
        session.dialed(dial.range, dial.attempt, std::make_error_code(std::errc::timed_out), now_);
      } else {
        session.time(now_);
      }
    }
    return session.outcome();
  }
  // A ps sends a frame that is no answer.
  void say(std::size_t range, const net::FrameHeader& header) {
    links_[range].frames.push_back(header);
  }
  // The link breaks.
  void cut(std::size_t range) {
    links_[range] = {};
    session.lost(range, std::make_error_code(std::errc::connection_reset), now_);
  }
  // A ps dies.
  void kill(std::size_t range, std::uint8_t replica = 0) {
    host(range, replica).is_up = false;
    cut(range);
  }

  [[nodiscard]] bool is_open(std::size_t range) const { return links_[range].is_open; }
  [[nodiscard]] std::uint64_t last_id(std::size_t range) const { return links_[range].last_id; }
  // Returns the requests since the last call.
  std::vector<ReceivedRequest> heard() { return std::exchange(heard_, {}); }
  std::vector<net::FrameKind> received_by(std::size_t range) {
    std::vector<net::FrameKind> kinds;
    for (const ReceivedRequest& each : heard_) {
      if (each.range == range) {
        kinds.push_back(each.header.kind);
      }
    }
    return kinds;
  }
  std::vector<Dial> dials() { return std::exchange(dials_, {}); }
  // The generation that heartbeats carry.
  [[nodiscard]] net::Generation named() const { return named_; }
  // The incarnations above which the trainer had to take a new one.
  [[nodiscard]] const std::vector<std::uint64_t>& incarnations_above() const {
    return incarnations_above_;
  }
  [[nodiscard]] const std::string& log() const { return log_; }

 private:
  struct Link {
    bool is_open = false;
    std::uint8_t replica = 0;
    std::uint64_t last_id = 0;
    std::deque<net::FrameHeader> frames = {};  // in flight to the trainer
  };

  bool deliver() {
    bool has_come = false;
    for (std::size_t range = 0; range < links_.size(); ++range) {
      Link& link = links_[range];
      while (link.is_open && session.reads(range) && !link.frames.empty()) {
        const net::FrameHeader header = link.frames.front();
        link.frames.pop_front();
        const ReplyPlan plan = session.header(range, header, now_);
        if (plan == ReplyPlan::kRefusal) {
          session.refused(range, *host(range, link.replica).refuses, now_);
        } else if (plan != ReplyPlan::kNothing) {
          session.body(range, now_);
        }
        has_come = true;
      }
    }
    return has_come || !session.out().effects().empty();
  }

  void apply(const Dial& dial) {
    dials_.push_back(dial);
    const FakeHost& to = host(dial.range, dial.replica);
    if (to.swallows) {
      swallowed_ = dial;
    } else if (!to.is_up) {
      session.dialed(dial.range, dial.attempt, std::make_error_code(std::errc::connection_refused),
                     now_);
    } else if (to.refuses) {
      session.dialed(dial.range, dial.attempt, *to.refuses, now_);
    } else {
      links_[dial.range] = {.is_open = true, .replica = dial.replica};
      session.dialed(dial.range, dial.attempt, to.welcome, now_);
    }
  }
  void apply(const SendRequest& effect) {
    Link& link = links_[effect.range];
    if (!link.is_open) {
      session.lost(effect.range, std::make_error_code(std::errc::not_connected), now_);
      return;
    }
    heard_.push_back({.range = effect.range, .replica = link.replica, .header = effect.header});
    link.last_id = effect.header.request_id;
    session.sent(effect.range, now_);
    FakeHost& to = host(effect.range, link.replica);
    if (to.hangs_up) {
      cut(effect.range);
      return;
    }
    if (to.dies_of == effect.header.kind) {
      to.dies_of.reset();
      to.restart(to.welcome.incarnation + 100);
      cut(effect.range);
      return;
    }
    answer(effect.range, effect.header);
  }
  void apply(const CloseLink& effect) { links_[effect.range] = {}; }
  void apply(const NameGeneration& effect) { named_ = effect.generation; }
  void apply(const TakeIncarnation& effect) { incarnations_above_.push_back(effect.above); }
  void apply(const Note& note) { log_ += note.text + "\n"; }

  void answer(std::size_t range, const net::FrameHeader& request) {
    using net::FrameKind;
    FakeHost& from = host(range, links_[range].replica);
    net::Welcome& state = from.welcome;
    const bool is_empty = state.state == net::ShardState::kEmpty;
    const bool is_old = is_empty || request.generation != state.generation;
    net::FrameHeader reply{.kind = FrameKind::kAck, .request_id = request.request_id};
    const auto parameters = [&] {
      reply.kind = FrameKind::kParameters;
      reply.step = state.step;
      reply.generation = std::exchange(from.misnames, std::nullopt).value_or(state.generation);
      if (state.step >= from.last_step) {
        reply.flags = net::kFlagFinished;
      }
    };
    switch (request.kind) {
      case FrameKind::kRestore:
        from.hold(request.step, request.generation);
        break;
      case FrameKind::kShutdown:
        state.state = net::ShardState::kFinished;
        break;
      case FrameKind::kPull:
        if (is_empty && from.waits) {
          return;
        }
        if ((request.flags & net::kFlagFinished) != 0) {
          from.last_step = state.step;
        }
        is_empty ? void(reply.kind = FrameKind::kFenced) : parameters();
        reply.sequence = from.counts_from;
        if ((request.flags & net::kFlagPrevious) != 0) {
          --reply.step;
        }
        break;
      case FrameKind::kPushPull:
        if (is_old) {
          reply.kind = FrameKind::kFenced;
        } else {
          state.step = request.step + (from.is_ahead ? 2 : 1);
          parameters();
          reply.sequence = std::max(request.sequence, from.counts_from);
        }
        break;
      case FrameKind::kGoodbye:
        if (!from.releases) {
          return;
        }
        break;
      case FrameKind::kGetConfig:
        reply.kind = is_empty ? FrameKind::kFenced : FrameKind::kConfig;
        break;
      case FrameKind::kPush:
        return;
      case FrameKind::kHeartbeat:
        reply.kind = FrameKind::kHeartbeat;
        break;
      case FrameKind::kBest: {
        net::Best told;
        EXPECT_FALSE(told.from_header(request));
        from.best.learn({.step = told.step, .loss = told.loss});
        reply =
            net::Best{.request_id = told.request_id, .step = from.best.step, .loss = from.best.loss}
                .to_header();
        break;
      }
      default:
        break;
    }
    if (from.talks_nonsense) {
      reply = {.kind = FrameKind::kWelcome, .request_id = request.request_id};
    }
    if (!from.is_mute) {
      links_[range].frames.push_back(reply);
    }
  }

  Clock::time_point now_{std::chrono::hours(1)};
  std::map<std::pair<std::size_t, std::uint8_t>, FakeHost> hosts_;
  std::vector<Link> links_;  // by range
  std::optional<Dial> swallowed_;
  net::Generation named_ = 0;
  std::vector<std::uint64_t> incarnations_above_;
  std::vector<ReceivedRequest> heard_;
  std::vector<Dial> dials_;
  std::string log_;
};

}  // namespace disttf::roles
