// Where a trainer computes gradients: in memory that ps on its machine read, as far as it has room
// for those of a step, else in memory of its own, from which they are sent.
//
// What was pushed is left alone for as long as a ps may have to read it: until its step has been
// made; and for good where the ps was given up, which may be frozen and run again.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "math/aligned.h"
#include "net/transport/gradient_memory.h"

namespace disttf::roles {

class GradientPlaces {
 public:
  // For gradients of `size` floats, of which a step has `per_step` at most. `memory`: nullptr where
  // there is none to share.
  void prepare(std::unique_ptr<net::GradientMemory> memory, std::size_t size, std::size_t per_step);
  // nullptr: all are sent.
  [[nodiscard]] net::GradientMemory* memory() const noexcept { return memory_.get(); }

  // Where the next one is to be computed, [size]; on a page boundary where it is shared.
  std::span<float> begin();
  // That one.
  [[nodiscard]] std::span<float> current() const noexcept { return current_; }
  // It is one of several of a step, and was pushed: the next one lies elsewhere.
  void pushed() noexcept { ++pushed_; }
  // Those that were pushed have been used.
  void begin_step() noexcept { pushed_ = 0; }
  // The memory is left to those that have been handed it. Where the system has no other, gradients
  // are sent from now on. REQUIRES: memory() != nullptr; begin() follows.
  void leave_memory();

 private:
  std::size_t size_ = 0;
  std::unique_ptr<net::GradientMemory> memory_;
  std::size_t room_ = 0;     // gradients that lie there
  std::size_t pushed_ = 0;   // of the step
  math::AlignedVector own_;  // of those for which there is no room: what is sent is free at once
  std::span<float> current_;
};

}  // namespace disttf::roles
