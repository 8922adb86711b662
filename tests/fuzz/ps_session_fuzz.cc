// A ps as a process (roles/ps/core/ps_core.h) whose peers send anything in any order: the input is
// a list of actions. The ps may refuse a peer's messages, but
//   - it reads exactly as many bytes of a body as its header announced;
//   - it makes a step only of complete gradients of that step and of as many trainers as the run's
//     configuration says;
//   - it does not change data that is being sent to an open connection;
//   - it sends frames only to connections that existed, and its sentences fit on a line of a log.
// The target plays the shell's part like roles/ps/shell/range_server.cc. The decoder of HELLO, and
// the shell's refusals, have a target of their own: here a HELLO comes from a task in the lists.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "net/wire/replication.h"
#include "roles/ps/core/ps_core.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/task_frames.h"

namespace {

using disttf::fuzz::Input;
using disttf::fuzz::require;
using disttf::net::ChannelPurpose;
using disttf::net::FrameHeader;
using disttf::net::FrameKind;
using disttf::net::SnapshotShardRequest;
using disttf::roles::BodyPlan;
using disttf::roles::Clock;
using disttf::roles::ConnectionId;
using disttf::roles::PsCore;
using disttf::roles::RunConfig;
using disttf::roles::Task;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kTrainers = 3;
constexpr std::size_t kMostConnections = 24;
constexpr std::size_t kMostActions = 200;
// A byte from here on, in the place of a frame's kind, selects a valid frame.
constexpr std::uint8_t kFirstAsTasksSay = 215;

class Host {
 public:
  explicit Host(Input input)
      : input_(input),
        config_(disttf::fuzz::run_of_choice(input_.byte(), kTrainers)),
        json_(to_json(config_)) {}

  void run() {
    for (std::size_t count = 0; count < kMostActions && !input_.is_empty(); ++count) {
      act();
    }
    // After any messages, a ps without peers either ends or waits for peers.
    for (const ConnectionId id : open()) hang_up(id);
  }

 private:
  struct Peer {
    disttf::net::Hello hello;
    bool is_frames = true;   // the ps reads frames from it
    BodyPlan plan;           // of a frame whose body is incomplete
    FrameHeader header;      // of that frame
    std::uint64_t left = 0;  // remaining bytes of that body
  };
  struct Reply {
    std::shared_ptr<const void> owner;
    std::span<const std::byte> bytes;
    uLong sum = 0;
  };
  // A gradient of a step of a generation that a range has received completely.
  using Gradient = std::tuple<std::size_t, disttf::net::Generation, std::uint64_t>;

  void act() {
    switch (input_.byte() % 8) {
      case 0:
        connect();
        break;
      case 1:
        pass_time();
        break;
      case 2:
        if (const ConnectionId id = choose(); id != 0) hang_up(id);
        break;
      case 3:
        reach();
        break;
      case 4:
        happen();
        break;
      default:
        if (const ConnectionId id = choose(); id != 0) frame(id);
        break;
    }
    settle();
  }

  // Events that no message causes.
  void happen() {
    switch (input_.byte() % 16) {
      case 0:
        core_.stop(
            input_.byte() % 2 == 0 ? disttf::roles::kInterrupted : disttf::roles::kTerminated,
            "SIGTERM", now_);
        break;
      case 1:
        core_.forgive(std::chrono::seconds(input_.byte()), now_);
        break;
      case 2:
        if (input_.byte() % 4 == 0) core_.broke("there is no memory");
        break;
      default:
        if (core_.awaits_clock()) core_.clock(now_);
        require(core_.take_metrics().task == task_.self);
        static_cast<void>(core_.relay().take());
        break;
    }
  }

  [[nodiscard]] std::vector<ConnectionId> open() const {
    std::vector<ConnectionId> ids;
    for (const auto& [id, peer] : peers_) ids.push_back(id);
    return ids;
  }
  ConnectionId choose() {
    const std::uint8_t which = input_.byte();
    if (peers_.empty()) return 0;
    return std::next(peers_.begin(), which % static_cast<std::ptrdiff_t>(peers_.size()))->first;
  }

  // ---- connections

  void connect() {
    const std::uint8_t who = input_.byte();
    const std::uint8_t how = input_.byte();
    if (peers_.size() >= kMostConnections || core_.has_ended()) return;
    constexpr std::array kPurposes = {ChannelPurpose::kStep, ChannelPurpose::kControl,
                                      ChannelPurpose::kState, ChannelPurpose::kView};
    disttf::net::Hello hello{.cluster = {},
                             .from = task_.cluster.trainer(who % kTrainers),
                             .to = task_.self,
                             .purpose = kPurposes[how % kPurposes.size()],
                             .replica = static_cast<std::uint8_t>(how >> 4U & 1U),
                             .incarnation = 1U + (who >> 4U)};
    if ((how & 8U) != 0) {  // the other ps, which has a copy to send
      hello.from = {.job = disttf::net::Job::kPs, .index = 1};
      hello.purpose = ChannelPurpose::kReplica;
    } else if ((how & 4U) != 0) {
      hello.from = {.job = disttf::net::Job::kEvaluator, .index = 0};
      hello.purpose = ChannelPurpose::kState;
    } else if (hello.purpose == ChannelPurpose::kStep) {
      hello.last = {.generation = input_.byte(), .step = input_.byte(), .push = input_.byte()};
    }
    const auto answer = core_.welcome(hello, now_);
    if (const auto* refusal = std::get_if<disttf::net::Refusal>(&answer)) {
      disttf::fuzz::require_sentence(refusal->sentence, "", disttf::net::kMaxSentenceBytes);
      return;
    }
    const ConnectionId id = ++last_;
    known_.insert(id);
    const PsCore::Reads reads =
        core_.connected(id, hello, disttf::net::to_string(hello.from), now_);
    if (reads == PsCore::Reads::kNothing) return;
    peers_[id] = {
        .hello = hello, .is_frames = reads == PsCore::Reads::kFrames, .plan = {}, .header = {}};
  }
  void reach() {
    const std::size_t replica = input_.byte() % core_.range_count();
    auto& range = core_.range(replica);
    if (!range.host().connects_to_backup() || !range.host().may_fill() ||
        range.host().backup.connection() != 0)
      return;
    const ConnectionId id = ++last_;
    known_.insert(id);
    peers_[id] = {.hello = {}, .is_frames = true, .plan = {}, .header = {}};
    peers_[id].hello.replica = static_cast<std::uint8_t>(replica);
    core_.reached(static_cast<std::uint8_t>(replica), id, now_);
  }
  void hang_up(ConnectionId id) {
    peers_.erase(id);
    replies_.erase(id);
    core_.closed(id, now_);
    settle();
  }

  // ---- frames

  void frame(ConnectionId id) {
    Peer& peer = peers_.at(id);
    if (!peer.is_frames) {
      find_snapshot(peer);
      return;
    }
    replies_.erase(id);  // its replies have been sent
    if (peer.left != 0 || peer.plan.is_body()) {
      read_body(id);
      return;
    }
    const std::uint8_t kind = input_.byte();
    const FrameHeader header = kind < kFirstAsTasksSay ? any_header(peer, kind) : said(peer);
    peer.header = header;
    peer.left = header.body_size;
    took_plan(id, core_.header(id, header, now_));
    read_body(id);
  }

  // A state channel's requests are answered beside the frames, with the state of one moment.
  void find_snapshot(const Peer& peer) {
    auto& range = core_.range(peer.hello.replica);
    const std::uint8_t how = input_.byte();
    const SnapshotShardRequest request{
        .name = how % 8U,
        .now = (how & 8U) != 0,
        .generation = range.state().generation() + (how >= 0xF0 ? 1U : 0U)};
    const auto found = range.state().find_snapshot(request);
    range.state().copy_snapshot(how % 4U);
    const auto made = range.state().kept_snapshot(request.name, request.generation);
    require(found.has_value() == (made != nullptr));
    if (made) require(made->sequence == how % 8U && made->step == found->step && how < 0xF0);
  }

  // Returns an arbitrary header; its body is then body_, as far as it goes.
  FrameHeader any_header(const Peer& peer, std::uint8_t kind) {
    const auto& range = core_.range(peer.hello.replica);
    FrameHeader header;
    header.kind = static_cast<FrameKind>(1 + kind % 44);
    header.request_id = input_.number();
    header.generation = range.state().generation() + input_.number();
    header.step = range.host().step() + input_.number();
    header.sequence = input_.number();
    const std::uint8_t oddities = input_.byte();
    if (range.state().shard() && (oddities & 1U) == 0) {
      header.range_begin = range.state().shard()->range().begin;
    }
    if ((oddities & 2U) != 0) {
      header.flags = static_cast<std::uint16_t>(input_.number()) & disttf::net::kKnownFlags &
                     ~disttf::net::kFlagInPlace;
    }
    if ((oddities & 4U) != 0) header.generation = input_.number();
    if ((oddities & 8U) != 0) header.step = input_.number();
    if ((oddities & 16U) != 0) header.range_begin = input_.number();
    body_ = make_body(peer, header);
    header.body_size = (oddities & 32U) != 0 ? input_.number() : body_.size();
    return header;
  }

  FrameHeader said(const Peer& peer) {
    const auto& range = core_.range(peer.hello.replica);
    const auto& shard = range.state().shard();
    FrameHeader header = disttf::fuzz::frame_of_a_task(
        input_, {.generation = range.state().generation(),
                 .step = range.host().step(),
                 .range_begin = shard ? shard->range().begin : std::size_t{0}});
    body_ = make_body(peer, header);
    header.body_size = body_.size();
    return header;
  }

  // Returns a body of the kind that the input selects: one that fits the frame, or any bytes.
  Bytes make_body(const Peer& peer, const FrameHeader& header) {
    const std::uint8_t form = input_.byte();
    const auto& shard = core_.range(peer.hello.replica).state().shard();
    const std::size_t floats = shard ? shard->range().size() : 0;
    Bytes body;
    switch (form % 8) {
      case 0:
        break;
      case 1:
        append(body, std::as_bytes(std::span(json_)));
        break;
      case 2:
        append_floats(body, floats);
        break;
      case 3:
        append_floats(body, shard ? shard->storage().state_size() : 0);
        break;
      case 4:
        body = disttf::net::encode(
            disttf::net::View{.number = {.chief = input_.byte(), .count = input_.byte()},
                              .primary = static_cast<std::uint8_t>(input_.byte() % 2),
                              .paired = input_.byte() % 2 == 1});
        break;
      case 5:
        append(body, disttf::net::encode(disttf::net::FillHead{.lineage = input_.byte(),
                                                               .counters = {},
                                                               .trainers = kTrainers,
                                                               .tensors = input_.byte()}));
        for (std::size_t each = 0; each < kTrainers; ++each) {
          append(body, disttf::net::encode(disttf::net::FillTrainer{.used = input_.byte()}));
        }
        append_floats(body, shard ? shard->storage().state_size() : 0);
        break;
      case 6:
        append(body, disttf::net::encode(disttf::net::UpdateHead{.incarnation = input_.byte(),
                                                                 .trainers = {input_.byte()}}));
        body.resize(disttf::net::padded_update_head_bytes(kTrainers));
        append_floats(body, floats);
        break;
      default:
        for (std::uint8_t size = input_.byte(); size > 0; --size) {
          body.push_back(static_cast<std::byte>(input_.byte()));
        }
        break;
    }
    if (header.kind == FrameKind::kPushPull &&
        config_.wire_dtype != disttf::roles::WireDtype::kF32 && form % 8 == 2) {
      body.resize(body.size() / 2);
    }
    return body;
  }
  static void append(Bytes& to, std::span<const std::byte> bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
  }
  // All values are equal; the input selects the value, so that it is sometimes not a number.
  void append_floats(Bytes& to, std::size_t count) {
    const std::uint32_t bits = std::uint32_t{input_.byte()} << 23U;
    for (std::size_t each = 0; each < count; ++each) {
      append(to, std::as_bytes(std::span(&bits, 1)));
    }
  }

  // Sends as much of the body as the input says; the rest follows with the peer's next action, or
  // never.
  void read_body(ConnectionId id) {
    std::uint8_t parts = input_.byte() % 4;
    while (peers_.contains(id) && peers_.at(id).plan.is_body() && parts != 3) {
      ++parts;
      Peer& peer = peers_.at(id);
      std::uint64_t bytes = peer.plan.bytes;
      for (const std::span<std::byte> place : peer.plan.places) {
        fill(place);
        bytes += place.size();
      }
      require(bytes <= peer.left);
      peer.left -= bytes;
      const Peer before = peer;
      if (peer.left == 0) came_whole(before);
      took_plan(id, core_.body(id, now_));
    }
  }
  void fill(std::span<std::byte> place) {
    const std::size_t known = std::min(place.size(), body_.size());
    std::ranges::copy(std::span(body_).first(known), place.begin());
    std::ranges::fill(place.subspan(known), std::byte{});
    body_.erase(body_.begin(), body_.begin() + static_cast<std::ptrdiff_t>(known));
  }
  void took_plan(ConnectionId id, const BodyPlan& plan) {
    const auto found = peers_.find(id);
    if (found == peers_.end()) return;
    found->second.plan = plan;
    if (plan.next == BodyPlan::Next::kStop) {
      found->second.is_frames = false;
    } else if (plan.next == BodyPlan::Next::kHeader) {
      require(found->second.left == 0);
    }
    settle();
    if (plan.next == BodyPlan::Next::kStop && peers_.contains(id)) hang_up(id);
  }
  void came_whole(const Peer& peer) {
    const FrameHeader& header = peer.header;
    if (header.kind == FrameKind::kPushPull && peer.hello.from.job != disttf::net::Job::kPs) {
      const std::size_t rank = task_.cluster.rank_of(peer.hello.from);
      const disttf::net::HostGroup group = disttf::net::host_group_of(task_.cluster, rank);
      const bool is_sum = (header.flags & disttf::net::kFlagGroupSum) != 0;
      if (is_sum && rank != group.first) return;  // the group's leader pushes its gradient
      for (std::size_t each = rank; each < rank + (is_sum ? group.count : 1); ++each) {
        gradients_[peer.hello.replica].insert({each, header.generation, header.step});
      }
    }
  }

  // ---- time

  void pass_time() {
    const std::uint8_t how_long = input_.byte();
    for (int each = 0; each < (how_long < 200 ? 1 : 300); ++each) {
      now_ += how_long % 2 == 0 ? disttf::roles::kWatchInterval : std::chrono::seconds(1);
      core_.time(now_);
      settle();
    }
  }

  // ---- the ps's effects

  void settle() {
    std::set<ConnectionId> gone;
    const auto take = [&](const auto& effect) { note(effect, gone); };
    core_.drain([&](std::size_t /*replica*/, const auto& effect) { take(effect); }, take);
    for (const ConnectionId id : gone) {
      if (peers_.erase(id) != 0) {
        replies_.erase(id);
        core_.closed(id, now_);
        settle();
      }
    }
    for (const auto& [id, replies] : replies_) {
      for (const Reply& reply : replies) require(sum_of(reply.bytes) == reply.sum);
    }
    for (std::size_t each = 0; each < core_.range_count(); ++each) check_step(each);
  }
  static uLong sum_of(std::span<const std::byte> bytes) {
    return crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
  }
  void note(disttf::roles::SendFrame& effect, std::set<ConnectionId>& /*gone*/) {
    require(known_.contains(effect.to));
    Bytes bytes = std::move(effect.body);
    bytes.insert(bytes.end(), effect.borrowed.begin(), effect.borrowed.end());
    const uLong sum = sum_of(bytes);  // reads all bytes, so a sanitizer checks them
    if (effect.owner && peers_.contains(effect.to)) {
      replies_[effect.to].push_back({.owner = effect.owner, .bytes = bytes, .sum = sum});
    }
  }
  void note(const disttf::roles::CloseConnection& effect, std::set<ConnectionId>& gone) const {
    require(known_.contains(effect.id));
    gone.insert(effect.id);
  }
  void note(const disttf::roles::FinishConnection& effect, std::set<ConnectionId>& gone) const {
    require(known_.contains(effect.id));
    gone.insert(effect.id);
  }
  void note(const disttf::roles::RefuseConnection& effect, std::set<ConnectionId>& gone) const {
    require(known_.contains(effect.id));
    disttf::fuzz::require_sentence(effect.sentence, "", disttf::net::kMaxSentenceBytes);
    gone.insert(effect.id);
  }
  static void note(const disttf::roles::Note& effect, std::set<ConnectionId>& /*gone*/) {
    disttf::fuzz::require_sentence(effect.text, "", 2 * disttf::net::kMaxSentenceBytes);
  }
  static void note(const auto& /*effect*/, std::set<ConnectionId>& /*gone*/) {}

  // Checks a step that this host made: one more than before, in the same generation and not copied
  // from another host.
  void check_step(std::size_t replica) {
    const auto& range = core_.range(replica);
    const auto& state = range.state();
    Progress& before = progress_[replica];
    const Progress now{.generation = state.generation(),
                       .restores = state.restores(),
                       .step = range.host().step(),
                       .is_backup = range.host().is_backup() || !state.is_restored()};
    const bool is_same = now.generation == before.generation && now.restores == before.restores &&
                         !now.is_backup && !before.is_backup;
    if (is_same) {
      require(now.step >= before.step);
      if (config_.sync_replicas && !config_.elastic() && now.step > before.step) {
        require(now.step == before.step + 1);
        std::size_t pushed = 0;
        for (std::size_t rank = 0; rank < kTrainers; ++rank) {
          pushed += gradients_[replica].contains({rank, now.generation, before.step})
                        ? std::size_t{1}
                        : 0;
        }
        require(pushed >=
                (config_.replicas_to_aggregate != 0 ? config_.replicas_to_aggregate : kTrainers));
      }
    }
    before = now;
  }

  struct Progress {
    disttf::net::Generation generation = 0;
    std::uint64_t restores = 0;
    std::uint64_t step = 0;
    bool is_backup = true;
  };

  Input input_;
  const RunConfig config_;
  const std::string json_;
  const Task task_ =
      disttf::fuzz::task_of_run({.job = disttf::net::Job::kPs, .index = 0}, kTrainers);
  Clock::time_point now_{std::chrono::hours(1)};
  PsCore core_{task_, 1, {}, now_};
  ConnectionId last_ = 0;
  std::set<ConnectionId> known_;
  std::map<ConnectionId, Peer> peers_;  // with open connections
  std::map<ConnectionId, std::vector<Reply>> replies_;
  Bytes body_;  // the unread rest of the frame being read
  std::array<std::set<Gradient>, 2> gradients_;
  std::array<Progress, 2> progress_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Host(Input({data, size})).run();
  return 0;
}
