// A trainer's part in a run (roles/trainer/core/run_session.h), whose ps send anything in any
// order: the input is a list of their actions. Their messages may end the trainer, but
//   - it sends requests only to ps that have welcomed it, and only those a trainer may send;
//   - the state on which it works next is complete from every ps, and is one state of all of them;
//   - it never waits for ever: when every ps is gone and no peer answers, each operation ends;
//   - its failures have a documented exit code and a sentence that fits on a line of a log.
// The target plays the shell's part like roles/trainer/shell/ps_client.cc.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <system_error>

#include "net/wire/bare_message.h"
#include "net/wire/messages.h"
#include "roles/trainer/core/run_session.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/task_frames.h"

namespace {

using disttf::fuzz::Input;
using disttf::fuzz::require;
using disttf::net::FrameHeader;
using disttf::net::FrameKind;
using disttf::roles::Clock;
using disttf::roles::ReplyPlan;
using disttf::roles::RequestBody;
using disttf::roles::RunSession;
using disttf::roles::Task;
using Outcome = RunSession::Outcome;

constexpr std::size_t kRanges = 2;
constexpr std::size_t kFloats = 4096;
constexpr std::size_t kMostOperations = 40;
constexpr std::uint8_t kLeaves = 3;  // instead of starting an operation
// Bounds the waits until every timeout has expired: a pause and a retry at most once every few
// milliseconds, for as long as Timeouts allows.
constexpr std::size_t kMostWaits = 200'000;

Task make_task(bool is_chief) {
  using disttf::net::Job;
  Task task =
      disttf::fuzz::task_of_run({.job = is_chief ? Job::kChief : Job::kWorker, .index = 0}, 2);
  if (is_chief) task.cluster.chief = {{.host = "c", .port = 3}};
  return task;
}

class Trainer {
 public:
  explicit Trainer(Input input)
      : input_(input),
        choice_(input_.byte()),
        is_chief_((choice_ & 1U) != 0),
        is_elastic_((choice_ & 2U) != 0),
        is_fully_synchronous_((choice_ & 4U) == 0),
        task_(make_task(is_chief_)) {}

  void run() {
    if ((choice_ & 8U) != 0) session_.expect_replicas(true);
    session_.begin_connect(now_);
    if (!drive()) return;
    if (!is_chief_) {
      session_.begin_get_config(now_);
      if (!drive()) return;
    }
    session_.prepare(
        {.size = kFloats, .fully_synchronous = is_fully_synchronous_, .elastic = is_elastic_});
    if (is_chief_) lead();
    if (!pull()) return;
    // Some inputs test only the end of the run.
    const std::size_t most = (choice_ & 64U) != 0 ? 0 : kMostOperations;
    for (std::size_t count = 0; count < most; ++count) {
      const std::uint8_t which = input_.byte() % 8;
      if (which == kLeaves || input_.is_empty()) break;
      if (!operate(which)) return;
    }
    leave();
  }

 private:
  void lead() {
    session_.lead();
    if ((choice_ & 16U) != 0) session_.record_best({.step = 3, .loss = 0.5});
    if ((choice_ & 32U) != 0) session_.provides_result();
  }
  bool pull() {
    came_whole_ = {};
    session_.begin_pull(now_);
    return drive() && has_state();
  }

  // Returns false if the trainer is done.
  bool operate(std::uint8_t which) {
    switch (which) {
      case 0:
        return pull();
      case 1:
        session_.begin_status(input_.byte() % kRanges, now_);
        return drive();
      case 2:
        return is_chief_ ? peek() : push_pull();
      default:
        return is_elastic_ ? await_step() : push_pull();
    }
  }
  bool push_pull() {
    const bool keep_snapshot = is_chief_ && input_.byte() % 4 == 0;
    if (input_.byte() % 4 == 0) {
      require(session_.push_header_ahead(0, sequence_ + 1, keep_snapshot).kind ==
              FrameKind::kPushPull);
    }
    came_whole_ = {};
    session_.begin_push_pull(++sequence_, keep_snapshot, now_);
    return drive() && has_state();
  }
  bool await_step() {
    for (std::uint8_t count = input_.byte() % 4; count > 0; --count) {
      session_.push(input_.byte());
      settle();
    }
    came_whole_ = {};
    ++sequence_;
    for (;;) {
      session_.begin_await_step(sequence_, false, now_);
      const bool goes_on = drive();
      if (session_.outcome() != Outcome::kNeedsWork) return goes_on && has_state();
      require(!session_.work().empty());
      for (const std::uint64_t micro_batch : session_.work()) session_.push(micro_batch);
      settle();
    }
  }
  bool peek() {
    came_whole_ = {};
    session_.begin_peek(now_);
    return drive() && has_state();
  }
  void leave() {
    if (!is_chief_) {
      session_.begin_await_end(now_);
      if (!drive() || !session_.was_released()) return;
      session_.begin_fetch_final(now_);
      static_cast<void>(drive());
      return;
    }
    if ((choice_ & 16U) != 0) {
      session_.begin_send_best(now_);
      if (!drive()) return;
    }
    session_.begin_await_others(now_);
    if (!drive()) return;
    session_.begin_shutdown(now_);
    static_cast<void>(drive());
    require(session_.outcome() == Outcome::kDone);
    session_.announce_end();
    settle();
  }

  // ---- an operation

  // Returns true if the next operation may follow.
  bool drive() {
    settle();
    std::size_t waits = 0;
    while (session_.outcome() == Outcome::kUnderWay || session_.outcome() == Outcome::kNeedsState) {
      if (session_.outcome() == Outcome::kNeedsState) {
        require(is_chief_);
        session_.provided(input_.byte(), now_);
      } else if (input_.is_empty()) {
        require(++waits < kMostWaits);
        wait_in_vain();
      } else {
        act();
      }
      settle();
    }
    if (session_.outcome() == Outcome::kFailed) check_failure();
    return session_.outcome() == Outcome::kDone;
  }
  void check_failure() {
    const disttf::roles::Failure& failure = session_.failure();
    disttf::fuzz::require_sentence(failure.what(), "", 2 * disttf::net::kMaxSentenceBytes);
    constexpr std::array kCodes = {disttf::roles::kError, disttf::roles::kUsage,
                                   disttf::roles::kLostPeers};
    require(refused_with_ == failure.exit_code() ||
            std::ranges::find(kCodes, failure.exit_code()) != kCodes.end());
  }
  // Every ps has answered a push or a pull.
  bool has_state() {
    for (const bool whole : came_whole_) require(whole);
    require(session_.range(0).generation() == session_.range(1).generation());
    require(session_.generation() == session_.reply().generation);
    require(session_.reply().same_step || !is_fully_synchronous_);
    return true;
  }

  // All ps are gone; advances the time to the trainer's next deadline.
  void wait_in_vain() {
    for (std::size_t range = 0; range < kRanges; ++range) {
      if (session_.reads(range)) lose(range);
      settle();
    }
    if (session_.outcome() != Outcome::kUnderWay) return;
    require(session_.deadline() != Clock::time_point::max());
    now_ = std::max(now_, session_.deadline());
    session_.time(now_);
  }

  void act() {
    const std::uint8_t what = input_.byte();
    const std::size_t range = what >> 7U;
    switch (what % 8) {
      case 0:
        if (session_.reads(range)) lose(range);
        break;
      case 1:
        pass_time();
        break;
      case 2:
        session_.is_replaced(range, input_.number(), now_);
        break;
      case 3:
        session_.forgive(std::chrono::milliseconds(10 * input_.byte()));
        break;
      default:
        if (session_.reads(range)) frame(range);
        break;
    }
  }
  void pass_time() {
    constexpr std::array kMilliseconds = {1, 20, 300, 1'000, 3'000, 11'000, 25'000, 70'000};
    now_ += std::chrono::milliseconds(kMilliseconds[input_.byte() % kMilliseconds.size()]);
    session_.time(now_);
  }
  void lose(std::size_t range) {
    is_open_[range] = false;
    session_.lost(range, std::make_error_code(std::errc::connection_reset), now_);
  }

  // ---- frames

  void frame(std::size_t range) {
    require(is_open_[range]);
    const FrameHeader header = make_header(range);
    switch (session_.header(range, header, now_)) {
      case ReplyPlan::kNothing:
        break;
      case ReplyPlan::kRefusal: {
        is_open_[range] = false;
        session_.refused(range, make_refusal(), now_);
        break;
      }
      case ReplyPlan::kParameters:
        require(header.kind == FrameKind::kParameters);
        if (input_.byte() % 8 == 7) {
          lose(range);
        } else {
          came_whole_[range] = true;
          session_.body(range, now_);
        }
        break;
      case ReplyPlan::kText:
        require(header.body_size <= (header.kind == FrameKind::kConfig
                                         ? disttf::net::kMaxConfigBodyBytes
                                         : disttf::net::kMaxControlBodyBytes));
        if (input_.byte() % 8 == 7) {
          lose(range);
        } else {
          session_.body(range, now_);
        }
        break;
    }
  }
  // Builds a header that fits the last request, with the changes that the input selects.
  FrameHeader make_header(std::size_t range) {
    const FrameHeader& request = request_[range];
    FrameHeader header;
    header.request_id = request.request_id;
    switch (request.kind) {
      case FrameKind::kPull:
      case FrameKind::kPushPull: {
        disttf::net::Parameters parameters;
        parameters.request_id = request.request_id;
        parameters.generation = session_.range(range).generation();
        parameters.step = request.step + input_.byte() % 4;
        parameters.finished = input_.byte() % 8 == 1;
        if (is_elastic_) parameters.share = {.first = input_.byte(), .stride = input_.byte()};
        header = parameters.to_header();
        header.body_size = session_.range(range).range.size() * sizeof(float);
        break;
      }
      case FrameKind::kGetConfig:
        header.kind = FrameKind::kConfig;
        header.body_size = 100;
        break;
      case FrameKind::kStatus:
        header.kind = FrameKind::kStatusReply;
        header.body_size = 100;
        break;
      case FrameKind::kBest:
        header = disttf::net::Best{.step = input_.byte(), .loss = 0.25}.to_header();
        header.request_id = request.request_id;
        break;
      default:
        header.kind = FrameKind::kAck;
        break;
    }
    spoil(header);
    return header;
  }
  void spoil(FrameHeader& header) {
    const std::uint8_t oddities = input_.byte();
    constexpr std::array kSaidWithoutBeingAsked = {FrameKind::kHeartbeat, FrameKind::kWork,
                                                   FrameKind::kFenced, FrameKind::kRefused};
    if ((oddities & 1U) != 0) {
      const std::uint8_t kind = input_.byte();
      header.kind = kind >= 0x80 ? kSaidWithoutBeingAsked[kind % kSaidWithoutBeingAsked.size()]
                                 : static_cast<FrameKind>(1 + kind % 44);
      header.body_size = 0;
    }
    if ((oddities & 2U) != 0) header.request_id = input_.number();
    if ((oddities & 4U) != 0) header.generation = input_.number();
    if ((oddities & 8U) != 0) header.step = input_.number();
    if ((oddities & 16U) != 0) header.sequence = input_.number();
    if ((oddities & 32U) != 0) header.body_size = input_.number();
    if ((oddities & 64U) != 0) {
      header.flags = static_cast<std::uint16_t>(input_.number()) & disttf::net::kKnownFlags &
                     ~disttf::net::kFlagInPlace;
    }
  }
  disttf::net::Refusal make_refusal() {
    constexpr std::array<std::uint8_t, 5> kCodes = {1, 2, 3, 138, 0};
    const std::uint8_t which = input_.byte();
    const disttf::net::Refusal refusal{.exit_code = kCodes[which % kCodes.size()],
                                       .sentence = "because",
                                       .replaced_by = (which & 0x80U) != 0 ? input_.number() : 0};
    refused_with_ = refusal.exit_code;
    return refusal;
  }

  // ---- the trainer's effects

  void settle() {
    session_.out().drain([this](const auto& effect) { this->apply(effect); });
  }
  void apply(const disttf::roles::SendRequest& effect) {
    require(effect.range < kRanges);
    check_request(effect);
    if (!is_open_[effect.range] || (!input_.is_empty() && input_.byte() == 0xFE)) {
      is_open_[effect.range] = false;
      session_.lost(effect.range, std::make_error_code(std::errc::broken_pipe), now_);
      return;
    }
    request_[effect.range] = effect.header;
    session_.sent(effect.range, now_);
  }
  void check_request(const disttf::roles::SendRequest& effect) const {
    const FrameKind kind = effect.header.kind;
    require((effect.body == RequestBody::kConfiguration) == (kind == FrameKind::kPublish));
    require((effect.body == RequestBody::kState) == (kind == FrameKind::kRestore));
    require((effect.body == RequestBody::kGradient) ==
            (kind == FrameKind::kPushPull || kind == FrameKind::kPush));
    constexpr std::array kOfTheChief = {FrameKind::kPublish, FrameKind::kRestore,
                                        FrameKind::kShutdown, FrameKind::kBest};
    require(is_chief_ || std::ranges::find(kOfTheChief, kind) == kOfTheChief.end());
  }
  void apply(const disttf::roles::Dial& effect) {
    require(effect.range < kRanges && effect.attempt > last_attempt_);
    require(effect.replica == 0 || (choice_ & 8U) != 0 || effect.replica == 1);
    last_attempt_ = effect.attempt;
    const disttf::roles::DialAnswer answer = answer_to(effect);
    is_open_[effect.range] = std::holds_alternative<disttf::net::Welcome>(answer);
    session_.dialed(effect.range, effect.attempt, answer, now_);
  }
  disttf::roles::DialAnswer answer_to(const disttf::roles::Dial& effect) {
    const std::uint8_t how = input_.byte();
    if (input_.is_empty() || how >= 0xF0) {
      if ((how & 1U) == 0) now_ = std::max(now_, effect.until);
      return std::make_error_code(std::errc::connection_refused);
    }
    if (how >= 0xE0) return make_refusal();
    disttf::net::Welcome welcome{.incarnation = 1U + effect.range,
                                 .state = disttf::net::ShardState::kReady,
                                 .replica_role = disttf::net::ReplicaRole::kOnly,
                                 .generation = 1,
                                 .step = 5,
                                 .heartbeat_ms = 1000};
    if ((how & 1U) != 0) welcome.incarnation = input_.number();
    if ((how & 2U) != 0) welcome.generation = input_.number();
    if ((how & 4U) != 0) welcome.step = input_.number();
    if ((how & 8U) != 0) {
      welcome.state = static_cast<disttf::net::ShardState>(input_.byte() % 3);
    }
    if ((how & 16U) != 0) {
      welcome.replica_role = static_cast<disttf::net::ReplicaRole>(input_.byte() % 3);
    }
    return welcome;
  }
  void apply(const disttf::roles::CloseLink& effect) { is_open_.at(effect.range) = false; }
  void apply(const disttf::roles::NameGeneration& /*effect*/) {}
  void apply(const disttf::roles::TakeIncarnation& effect) {
    session_.took_incarnation(std::max(effect.above, effect.above + 1));
  }
  static void apply(const disttf::roles::Note& effect) {
    disttf::fuzz::require_sentence(effect.text, "", 2 * disttf::net::kMaxSentenceBytes);
  }

  Input input_;
  const std::uint8_t choice_;
  const bool is_chief_;
  const bool is_elastic_;
  const bool is_fully_synchronous_;
  const Task task_;
  RunSession session_{task_, std::mt19937_64(1)};
  Clock::time_point now_{std::chrono::hours(1)};
  std::array<bool, kRanges> is_open_{};
  std::array<FrameHeader, kRanges> request_;  // the last request of each range
  std::array<bool, kRanges> came_whole_{};    // parameters of this operation are complete
  std::uint64_t sequence_ = 0;
  std::uint64_t last_attempt_ = 0;
  std::optional<int> refused_with_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Trainer(Input({data, size})).run();
  return 0;
}
