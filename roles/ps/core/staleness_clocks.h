// Async runs: who is ahead of whom, and who is held for it (--max_staleness, stale synchronous
// parallel).
//
// A trainer's clock, how many iterations it has finished, is the number of its newest push, and
// nobody's but the trainer's to set: it numbers a push above all that any ps has told it to count
// from, and sends it to all ps. What a ps tells is the newest number that it has had of it, and,
// where the trainer was away for so long that the others are further ahead than the bound allows,
// the clock of the slowest of them: nobody is to wait until it has made up for what it has missed.
//
// The answer of a trainer is held that is more than the bound ahead of the slowest joined one. So
// no circle of trainers waits, whatever each ps has seen of whom. That A waits for B at a ps means
// that A's clock there is larger than B's. Who waits has sent its newest push to all ps, and until
// it has come everywhere something is on its way, or a ps is about to lose the trainer, and then
// holds nobody back for it. Once it has come it is the trainer's clock at every ps. Along a circle
// each clock would be larger than the next, and the last larger than the first.
//
// A push costs no look at all trainers, but for the one that lets the slowest of them go on.
//
// A value. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace disttf::roles {

class StalenessClocks {
 public:
  // `bound`: nobody is held where there is none.
  StalenessClocks(std::size_t trainers, std::optional<std::uint64_t> bound)
      : bound_(bound), trainers_(trainers) {}

  // A trainer that has not joined, or has left, holds back nobody.
  void join(std::size_t trainer);
  void leave(std::size_t trainer);
  // Its newest push has this number. (It may be below the one before: ps of which only some have
  // had the last push of a trainer that was replaced are to count alike.)
  void set(std::size_t trainer, std::uint64_t clock);

  [[nodiscard]] std::uint64_t clock(std::size_t trainer) const { return trainers_[trainer].clock; }
  // What the trainer's next push is to be numbered above.
  [[nodiscard]] std::uint64_t counts_from(std::size_t trainer) const {
    return std::max(trainers_[trainer].clock, trainers_[trainer].level);
  }
  // Whether its answer waits for others.
  [[nodiscard]] bool is_held(std::size_t trainer) const;
  // Another number whenever somebody may be held no longer by what another one has done.
  [[nodiscard]] std::uint64_t releases() const noexcept { return releases_; }

 private:
  struct Trainer {
    std::uint64_t clock = 0;
    std::uint64_t level = 0;  // where the slowest was when it came, if far ahead
    bool joined = false;
  };

  void add(std::uint64_t counted);
  void remove(std::uint64_t counted);

  std::optional<std::uint64_t> bound_;
  std::vector<Trainer> trainers_;  // by rank
  // The least that a joined one counts from, and how many count from there.
  std::optional<std::uint64_t> slowest_;
  std::size_t slowest_ones_ = 0;
  std::uint64_t releases_ = 0;
};

}  // namespace disttf::roles
