// Several runs with the same --train_dir by mistake, in virtual time. Their chiefs start, are
// suspended, killed, also within an operation on the disk, and started again. Whatever happens:
//   - no run saves a checkpoint once another one has taken the lock;
//   - a chief gets the lock or is refused in time, and is refused only because of a living run;
//   - a chief that has lost the lock ends at its next renewal.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "run/outcome.h"
#include "storage/checkpoint/core/run_lock.h"
#include "tests/data/simulated_file_system.h"

namespace disttf::sim {
namespace {

using roles::RunLockHolder;
using std::chrono::milliseconds;
using std::chrono::seconds;
using LockTime = RunLockHolder::Time;

constexpr const char* kSharedDirectory = "/runs/a";
constexpr int kMostChiefs = 3;  // that live at the same time
// The interval at which a waiting chief looks, as in held_run_lock.cc.
constexpr milliseconds kLook{500};
// Its own wait, and that for another one that died while it took the lock over, twice.
constexpr auto kLongestTake = 3 * roles::kLockExpiry;
// An owner may have renewed the lock just before it died.
constexpr auto kRemembered = roles::kLockExpiry + 2 * roles::kLockRenewal;

struct LockingChief {
  std::string run;
  std::int64_t pid = 0;
  std::unique_ptr<RunLockHolder> holder;
  bool has_lock = false;
  LockTime next{};           // when it does something
  LockTime renews{};         // once it has the lock
  bool is_replaced = false;  // by a chief of the same run: the ps give it nothing to save
  milliseconds waited{0};    // for the lock, while it ran
};

class TwoRuns {
 public:
  explicit TwoRuns(std::uint64_t seed) : random_(seed) {}

  // Returns what is wrong; empty: nothing.
  std::string play(int events) {
    for (int each = 0; each < events && violation_.empty(); ++each) {
      if (living() < kMostChiefs && below(8) == 0) begin();
      disturb();
      act();
    }
    return violation_;
  }

  [[nodiscard]] const std::map<std::string, int>& seen() const { return seen_; }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  [[nodiscard]] std::int64_t living() const { return std::ssize(chiefs_); }

  void begin() {
    const std::string run(1, static_cast<char>('A' + below(3)));
    LockingChief& chief = chiefs_.emplace_back();
    chief.run = run;
    chief.pid = ++pids_;
    chief.next = now_;
    alive_.insert({chief.pid, true});
    roles::RunLockOwner self{.run = run,
                             .process = "p" + std::to_string(chief.pid),
                             .host = "host",
                             .machine = below(2) == 0 ? "m0" : "m1",
                             .directory = kSharedDirectory,
                             .pid = chief.pid,
                             .started = 1,
                             .time = "then"};
    chief.holder = std::make_unique<RunLockHolder>(
        disk_, kSharedDirectory, std::move(self),
        [this](const roles::RunLockOwner& owner) { return std::optional(alive_[owner.pid]); });
  }

  void end(std::list<LockingChief>::iterator chief) {
    alive_[chief->pid] = false;
    last_alive_[chief->run] = now_;
    chiefs_.erase(chief);
  }

  std::list<LockingChief>::iterator any() {
    return std::next(chiefs_.begin(), static_cast<std::ptrdiff_t>(below(chiefs_.size())));
  }

  void disturb() {
    if (chiefs_.empty()) return;
    const std::uint64_t what = below(60);
    if (what == 0) {
      ++seen_["killed"];
      end(any());
    } else if (what == 1) {
      ++seen_["ended"];
      const auto chief = any();
      chief->holder->release();
      end(chief);
    } else if (what < 4) {
      const auto chief = any();
      chief->next = std::max(chief->next, now_ + milliseconds(below(200'000)));
    } else if (what < 6) {
      dies_at_ = below(6);  // that operation on the disk of the next one that acts
    }
  }

  // Lets the chief whose turn it is act.
  void act() {
    if (chiefs_.empty()) {
      now_ += seconds(below(100));
      return;
    }
    const auto chief = std::ranges::min_element(chiefs_, {}, &LockingChief::next);
    now_ = std::max(now_, chief->next);
    disk_.set_now(std::chrono::duration_cast<seconds>(now_.time_since_epoch()).count());
    if (dies_at_) disk_.cut_power_at(*dies_at_);
    dies_at_.reset();
    try {
      chief->has_lock ? use(*chief) : take(*chief);
    } catch (const roles::Failure&) {
      lost(*chief);
      chief->holder->release();
      end(chief);
    } catch (const data::test::PowerCut&) {
      ++seen_["died at the disk"];
      end(chief);
    }
    disk_.power_on();
  }

  void take(LockingChief& chief) {
    if (!chief.holder->try_to_take(now_)) {
      seen_[owner_ == chief.run ? "taken again" : "taken"] += 1;
      owner_ = chief.run;
      for (LockingChief& other : chiefs_) {
        other.is_replaced = other.is_replaced || (other.run == chief.run && &other != &chief);
      }
      chief.has_lock = true;
      chief.renews = now_ + roles::kLockSettles;
      chief.next = now_ + milliseconds(below(2000));
    } else {
      chief.waited += kLook;
      chief.next = now_ + kLook;
      if (chief.waited > kLongestTake) violate(chief, "still waits for the lock");
    }
  }

  void use(LockingChief& chief) {
    if (now_ >= chief.renews) {
      chief.holder->renew(now_, "now");
      chief.renews = now_ + roles::kLockRenewal;
      if (chief.run != owner_ && !chief.is_replaced) {
        violate(chief, "renews a lock that it has lost");
      }
    } else if (!chief.is_replaced) {
      chief.holder->check(now_, chief.holder->looked());
      ++seen_["saved"];
      if (chief.run != owner_) violate(chief, "saves though another run has the lock");
    }
    chief.next = std::max(now_, std::min(chief.renews, now_ + milliseconds(1 + below(9000))));
    // After a suspension either may come first: two threads.
    if (below(2) == 0) chief.renews = std::max(chief.renews, chief.next + milliseconds(1));
  }

  // It was refused, or has lost the lock.
  void lost(const LockingChief& chief) {
    if (chief.has_lock) {
      ++seen_[now_ >= chief.renews ? "lost at a renewal" : "lost before a checkpoint"];
      return;
    }
    ++seen_["refused"];
    const bool lives = std::ranges::any_of(
        chiefs_, [&](const LockingChief& other) { return other.run != chief.run; });
    const bool lived = std::ranges::any_of(last_alive_, [&](const auto& other) {
      return other.first != chief.run && now_ - other.second < kRemembered;
    });
    if (!lives && !lived) violate(chief, "is refused though no other run lives");
  }

  void violate(const LockingChief& chief, const std::string& what) {
    violation_ = "chief " + std::to_string(chief.pid) + " of run " + chief.run + " " + what;
  }

  std::mt19937_64 random_;
  data::test::SimulatedFileSystem disk_;
  LockTime now_{std::chrono::hours(1)};
  std::list<LockingChief> chiefs_;  // that live
  std::int64_t pids_ = 0;
  std::map<std::int64_t, bool> alive_;
  std::map<std::string, LockTime> last_alive_;  // of runs: when a chief of theirs ended last
  std::string owner_;                           // the run that has taken the lock last
  std::optional<std::uint64_t> dies_at_;
  std::map<std::string, int> seen_;
  std::string violation_;
};

TEST(TwoRunsOnADirectory, NeverBothSave) {
  constexpr std::uint64_t kSeeds = 60;
  constexpr int kEvents = 2000;
  std::map<std::string, int> seen;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    TwoRuns runs(seed);
    ASSERT_EQ(runs.play(kEvents), "") << "seed " << seed;
    for (const auto& [what, times] : runs.seen()) seen[what] += times;
  }
  for (const char* what : {"killed", "ended", "died at the disk", "taken", "taken again", "saved",
                           "refused", "lost at a renewal", "lost before a checkpoint"}) {
    EXPECT_GT(seen[what], 0) << what;
  }
}

}  // namespace
}  // namespace disttf::sim
