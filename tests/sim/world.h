// A simulated world's clock, its events, and what everybody in it counts. One thread, no wall
// clock: two worlds of one seed and one list of faults are the same, event for event.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "roles/ps/core/membership.h"

namespace disttf::sim {

using Clock = roles::Clock;
using Time = Clock::time_point;
using Duration = Clock::duration;

// Virtual time begins here: not at 0, so that a time that was forgotten is seen.
inline constexpr Time kBeginning{std::chrono::hours(1)};

// What a number is drawn for: math::random_bits()' purpose.
enum class Draw : std::uint32_t {
  kSwarm = 1001,
  kFault,
  kLatency,
  kPace,
  kBackoff,
  kRestart,
  kIncarnation,
  kSplit,
  kDealing,
  kDisk,
  kDiskFault,
  kLaunch,
  kClock,
  kAverage,
  kRunning,
  kEarlyEnd,
  kEvaluator,
  kSharing,
  kHosts,
  kSecret,
  kOtherConfiguration,
  kGroup,
  kDirectory,
};

// What a run was seen to do. Over many seeds each must have been seen.
enum class Mark : std::uint8_t {
  kKill,
  kVanish,
  kFreeze,
  kTerm,
  kBreak,
  kClog,
  kCutBody,
  kHeaderAndBodyApart,
  kRestore,
  kSetBack,
  kFence,
  kPrevious,
  kReconnect,
  kReplacedProcess,
  kPsReplacedWhileSilent,
  kLostPeers,
  kDropped,
  kWork,
  kStaysAway,
  kCutCollected,
  kRestoredFromCut,
  kLateTrainerTold,
  kChiefLostAtEnd,
  kPromotion,
  kPair,
  kFill,
  kRefused,
  kCheckpointSaved,
  kShardsCommitted,
  kRestoredFromDisk,
  kKilledAtDisk,
  kPowerCut,
  kDiskFailed,
  kRot,
  kLaunchedAgain,
  kLaunchGivesUp,
  kIncarnationTaken,
  kEndedEarly,
  kRestoredToEarlyEnd,
  kCutScored,
  kTornCut,
  kResultScored,
  kInPlace,
  kElasticInPlace,
  kUpdateInPlace,
  kCaughtUp,
  kGiven,
  kRestTaken,
  kSummed,
  kPushedWithoutLeader,
  kSecretChanged,
  kSecretChanges,
  kBegunAnew,
  kOtherConfiguration,
  kUnmounted,
  kStoreAway,
  kCheckpointScored,
  kCheckpointGone,
  kWriterAwaited,
  kCount,
};
[[nodiscard]] std::string_view name_of(Mark mark) noexcept;
inline constexpr auto kMarks = static_cast<std::size_t>(Mark::kCount);

// Whoever events happen to.
class Actor {
 public:
  Actor() = default;
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;
  virtual ~Actor() = default;
  virtual void on_event(std::uint32_t what, std::uint64_t a, std::uint64_t b) = 0;
};

class World {
 public:
  // `trace`: prints what happens.
  // `log`, unless nullptr: gets what tasks, and whoever hurts them, say. Must outlive the world.
  World(std::uint64_t seed, bool trace, std::vector<std::string>* log = nullptr)
      : seed_(seed), trace_(trace), log_(log) {
    heap_.reserve(1024);
  }

  [[nodiscard]] Time now() const noexcept { return now_; }
  // 64 bits that depend on nothing but the seed and these.
  [[nodiscard]] std::uint64_t draw(Draw what, std::uint64_t stream, std::uint64_t index) const;
  // In [0, limit).
  [[nodiscard]] std::uint64_t below(std::uint64_t limit, Draw what, std::uint64_t stream,
                                    std::uint64_t index) const {
    return draw(what, stream, index) % limit;
  }

  // To happen then. Events of one time happen in an order that the seed decides.
  void schedule(Time at, Actor& actor, std::uint32_t what, std::uint64_t a = 0,
                std::uint64_t b = 0);
  // The next event. False: there is none.
  bool step();

  // A promise was broken. The first one counts.
  void violate(std::string sentence);
  [[nodiscard]] const std::string& violation() const noexcept { return violation_; }

  void mark(Mark what) noexcept { ++marks_[static_cast<std::size_t>(what)]; }
  [[nodiscard]] const std::array<std::uint64_t, kMarks>& marks() const noexcept { return marks_; }

  [[nodiscard]] bool traces() const noexcept { return trace_; }
  // A line of the trace, with the time before it.
  void trace(const std::string& line) const;
  // The same, and one of the log.
  [[nodiscard]] bool logs() const noexcept { return trace_ || log_ != nullptr; }
  void log(const std::string& line) const;

  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  // Of all that has happened.
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  void stir(std::uint64_t value) noexcept {
    hash_ = (hash_ ^ value) * 0x9E3779B97F4A7C15U;
    hash_ ^= hash_ >> 32U;
  }

 private:
  struct Event {
    Time at;
    std::uint64_t tie;  // of no two events the same, but by a chance of nothing
    Actor* actor;
    std::uint32_t what;
    std::uint64_t a;
    std::uint64_t b;
  };
  static bool is_later(const Event& x, const Event& y) noexcept {
    return x.at != y.at ? x.at > y.at : x.tie > y.tie;
  }

  const std::uint64_t seed_;
  const bool trace_;
  std::vector<std::string>* const log_;
  Time now_ = kBeginning;
  std::vector<Event> heap_;
  std::uint64_t scheduled_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t hash_ = 1;
  std::array<std::uint64_t, kMarks> marks_{};
  std::string violation_;
};

}  // namespace disttf::sim
