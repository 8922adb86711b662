// Elastic runs: which trainer computes which micro-batches of a step.
//
// Whoever is here when a step begins shares it, told so with the parameters that it begins from.
// Trainers come and go meanwhile: once everybody who is here waits and the step is still not made,
// those who were to compute the rest have left, or it was never dealt. It is dealt then, one
// micro-batch after the other, to those who wait.
//
// Whichever trainer computes a micro-batch, and if two do, the bits are the same: so ps need not
// agree on any of this, nor remember it. (Trainers go by the shares of one of them, ps 0.)
//
// A value: who is here and who waits it is told in each call. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/wire/messages.h"

namespace disttf::roles {

class MicroBatchDealer {
 public:
  // Of a trainer, as a ps sees it.
  enum class Activity : std::uint8_t {
    kAway,      // it cannot be sent anything
    kComputes,  // or does something else than to wait for the next step
    kWaits,     // for the next step
  };
  // To be sent to that trainer, which waits: this one is missing.
  struct Deal {
    std::size_t rank = 0;
    std::size_t micro_batch = 0;
    friend bool operator==(const Deal&, const Deal&) = default;
  };

  // `least`: trainers without which no step is dealt.
  MicroBatchDealer(std::size_t trainers, std::size_t least) : trainers_(trainers), least_(least) {}

  // How many trainers are to be here.
  [[nodiscard]] std::size_t least() const noexcept { return least_; }

  // A step begins. `activities`, here and below: by rank, of all trainers.
  void begin_step(std::span<const Activity> activities);
  // What this trainer takes of it. Nothing, where it was not here or too few were.
  [[nodiscard]] net::StepShare share_of(std::size_t rank) const { return trainers_[rank].share; }

  // Whether what is missing of the step is to be dealt: enough trainers are here, all of them wait,
  // and what each has been dealt since has come.
  [[nodiscard]] bool is_stuck(std::span<const Activity> activities) const;
  // Deals it to those who wait, in turns. REQUIRES: is_stuck().
  [[nodiscard]] std::vector<Deal> deal(std::span<const Activity> activities,
                                       std::span<const std::size_t> missing);
  // A gradient of this trainer has come, or turned out not to be needed.
  void came(std::size_t rank) noexcept;
  // It does not wait any more: it was answered, or has left.
  void forget(std::size_t rank) noexcept { trainers_[rank].owed = 0; }

 private:
  struct Trainer {
    net::StepShare share;
    std::size_t owed = 0;  // micro-batches that it was dealt while it waited
  };

  std::vector<Trainer> trainers_;  // by rank
  std::size_t least_;
};

}  // namespace disttf::roles
