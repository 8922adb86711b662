// Async runs: how far each trainer is ahead, and whether its answer is held back (--max_staleness,
// stale synchronous parallel).
//
// A trainer's clock is the number of iterations that it has finished, which is the number of its
// newest push. Only the trainer sets it: it numbers a push above every number that a ps has told it
// to count from, and sends it to all ps. A ps reports the newest number that it has received. If a
// trainer was away for so long that the others are further ahead than the bound allows, the ps
// reports the clock of the slowest of them instead, so that the others need not wait until it has
// caught up.
//
// The answer of a trainer is held back while its clock is more than the bound ahead of the slowest
// joined trainer. This cannot deadlock, whatever each ps has received. That A waits for B at a ps
// means that A's clock there is larger than B's. A waiting trainer has sent its newest push to all
// ps. Until that push has arrived everywhere, either a frame is on its way, or a ps is about to
// lose the trainer and then no longer counts it. Once it has arrived, it is the trainer's clock at
// every ps. Around a circle of waiting trainers each clock would be larger than the next, and the
// last larger than the first.
//
// A push does not scan the trainers, except for one that releases others by moving the slowest
// clock.
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
  // `bound`: without one no answer is held back.
  StalenessClocks(std::size_t trainers, std::optional<std::uint64_t> bound)
      : bound_(bound), trainers_(trainers) {}

  // A trainer that has not joined, or has left, does not hold back others.
  void join(std::size_t trainer);
  void leave(std::size_t trainer);
  // The trainer's newest push has this number. (It may be below the previous one: ps of which only
  // some received the last push of a replaced trainer are to agree.)
  void set(std::size_t trainer, std::uint64_t clock);

  [[nodiscard]] std::uint64_t clock(std::size_t trainer) const { return trainers_[trainer].clock; }
  // Returns the number above which the trainer's next push is to be numbered.
  [[nodiscard]] std::uint64_t counts_from(std::size_t trainer) const {
    return std::max(trainers_[trainer].clock, trainers_[trainer].level);
  }
  // Returns whether its answer waits for other trainers.
  [[nodiscard]] bool is_held(std::size_t trainer) const;
  // Returns a number that changes whenever a trainer may have been released by another one.
  [[nodiscard]] std::uint64_t releases() const noexcept { return releases_; }

 private:
  struct Trainer {
    std::uint64_t clock = 0;
    std::uint64_t level = 0;  // the slowest clock when it joined, if that was far ahead
    bool joined = false;
  };

  void add(std::uint64_t counted);
  void remove(std::uint64_t counted);

  std::optional<std::uint64_t> bound_;
  std::vector<Trainer> trainers_;  // by rank
  // The lowest clock of a joined trainer, and how many trainers have it.
  std::optional<std::uint64_t> slowest_;
  std::size_t slowest_ones_ = 0;
  std::uint64_t releases_ = 0;
};

}  // namespace disttf::roles
