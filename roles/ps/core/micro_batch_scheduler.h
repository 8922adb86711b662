// Elastic runs: the schedule of micro-batches, that is which trainer computes which micro-batches
// of a step.
//
// The trainers that are present when a step begins share it; each receives its share with the
// parameters. If trainers leave during the step, their micro-batches stay missing. When all present
// trainers wait and the step is not complete, the missing micro-batches are assigned one by one to
// the waiting trainers.
//
// A micro-batch gives bit-identical gradients on every trainer, and a duplicate is ignored. So the
// ps need neither agree on the schedule nor store it. (Trainers use the shares of ps 0.)
//
// A value: each call receives which trainers are present and which wait. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/wire/messages.h"

namespace disttf::roles {

class MicroBatchScheduler {
 public:
  // What a trainer does, as a ps sees it.
  enum class Activity : std::uint8_t {
    kAway,      // disconnected
    kComputes,  // computes, or does anything but wait for the next step
    kWaits,     // waits for the next step
  };
  // An assignment of a missing micro-batch, to be sent to a trainer that waits.
  struct Assignment {
    std::size_t rank = 0;
    std::size_t micro_batch = 0;
    friend bool operator==(const Assignment&, const Assignment&) = default;
  };

  // `least`: the number of trainers below which no step is scheduled.
  MicroBatchScheduler(std::size_t trainers, std::size_t least)
      : trainers_(trainers), least_(least) {}

  // Returns how many trainers must be present.
  [[nodiscard]] std::size_t least() const noexcept { return least_; }

  // A step begins. `activities`, here and below: of all trainers, by rank.
  void begin_step(std::span<const Activity> activities);
  // Returns the trainer's share of the step. Empty if it was absent, or if too few were present.
  [[nodiscard]] net::StepShare share_of(std::size_t rank) const { return trainers_[rank].share; }

  // Returns whether the missing micro-batches are to be assigned: enough trainers are present, all
  // of them wait, and each has sent all that it was assigned.
  [[nodiscard]] bool is_stuck(std::span<const Activity> activities) const;
  // Assigns them round-robin to the trainers that wait. REQUIRES: is_stuck().
  [[nodiscard]] std::vector<Assignment> assign(std::span<const Activity> activities,
                                               std::span<const std::size_t> missing);
  // A gradient of this trainer has arrived, or was discarded on arrival.
  void came(std::size_t rank) noexcept;
  // The trainer no longer waits: it was answered, or has left.
  void forget(std::size_t rank) noexcept { trainers_[rank].owed = 0; }

 private:
  struct Trainer {
    net::StepShare share;
    std::size_t owed = 0;  // outstanding micro-batches assigned to it while it waited
  };

  std::vector<Trainer> trainers_;  // by rank
  std::size_t least_;
};

}  // namespace disttf::roles
