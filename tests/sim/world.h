// A simulated world's clock, its events, and counters of what happened. It has one thread and no
// wall clock: two worlds with the same seed and list of faults are equal, event for event.
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

// Virtual time begins here, and not at 0, so that an uninitialized time is noticed.
inline constexpr Time kBeginning{std::chrono::hours(1)};

// What a number is drawn for: the purpose argument of math::random_bits().
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
  kEarlyStop,
  kEvaluator,
  kSharing,
  kHosts,
  kSecret,
  kOtherConfiguration,
  kGroup,
  kDirectory,
  kProgram,
  kPsShell,
  kPsAwake,
};

// Events of interest in a run. Over many seeds each must have occurred.
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
  kRolledBack,
  kFence,
  kPrevious,
  kReconnect,
  kReplacedProcess,
  kPsReplacedWhileSilent,
  kLostPeers,
  kDropped,
  kWork,
  kStaysAway,
  kSnapshotCollected,
  kRestoredFromSnapshot,
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
  kRestoredToEarlyStop,
  kSnapshotScored,
  kTornSnapshot,
  kResultScored,
  kInPlace,
  kElasticInPlace,
  kUpdateInPlace,
  kCaughtUp,
  kHandedOff,
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
  kProgramKilled,
  kProgramFrozen,
  kProgramHung,
  kProgramNotStarted,
  kSpareUsed,
  kProgramAskedAgain,
  kProgramWrong,
  kProgramSaved,
  kRunFailedByProgram,
  kMadeOnThread,
  kLeftWithoutWake,
  kAcknowledgedInMemory,
  kCount,
};
[[nodiscard]] std::string_view name_of(Mark mark) noexcept;
inline constexpr auto kMarks = static_cast<std::size_t>(Mark::kCount);

// A receiver of events.
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
  // `trace`: prints all events. `log`: if not nullptr, gets the log lines of tasks and faults. Must
  // outlive the world.
  World(std::uint64_t seed, bool trace, std::vector<std::string>* log = nullptr)
      : seed_(seed), trace_(trace), log_(log) {
    heap_.reserve(1024);
  }

  [[nodiscard]] Time now() const noexcept { return now_; }
  // Returns 64 bits that depend only on the seed and the arguments.
  [[nodiscard]] std::uint64_t draw(Draw what, std::uint64_t stream, std::uint64_t index) const;
  // Returns a number in [0, limit).
  [[nodiscard]] std::uint64_t below(std::uint64_t limit, Draw what, std::uint64_t stream,
                                    std::uint64_t index) const {
    return draw(what, stream, index) % limit;
  }

  // Schedules an event. The seed decides the order of events at the same time.
  void schedule(Time at, Actor& actor, std::uint32_t what, std::uint64_t a = 0,
                std::uint64_t b = 0);
  // Handles the next event. Returns false if there is none.
  bool step();

  // Records a violated invariant. Only the first one is kept.
  void violate(std::string sentence);
  [[nodiscard]] const std::string& violation() const noexcept { return violation_; }

  void mark(Mark what) noexcept { ++marks_[static_cast<std::size_t>(what)]; }
  [[nodiscard]] const std::array<std::uint64_t, kMarks>& marks() const noexcept { return marks_; }

  [[nodiscard]] bool traces() const noexcept { return trace_; }
  // Prints a line of the trace, with the time before it.
  void trace(const std::string& line) const;
  // Returns whether log() has an effect. log() prints a line of the trace and appends one to the
  // log.
  [[nodiscard]] bool logs() const noexcept { return trace_ || log_ != nullptr; }
  void log(const std::string& line) const;

  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  // Returns a hash of all events.
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  void stir(std::uint64_t value) noexcept {
    hash_ = (hash_ ^ value) * 0x9E3779B97F4A7C15U;
    hash_ ^= hash_ >> 32U;
  }

 private:
  struct Event {
    Time at;
    std::uint64_t tie;  // random: practically never equal for two events
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
