// The memory in which a trainer computes gradients: memory that ps on its machine can read, as far
// as it has room for the gradients of a step; else memory of its own, from which they are sent.
//
// A pushed gradient is not overwritten while a ps may read it: until its step has been made, and
// never again if that ps was declared dead, since it may only be suspended.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "math/aligned.h"
#include "net/tcp/gradient_memory.h"

namespace disttf::roles {

class GradientBuffers {
 public:
  // For gradients of `size` floats, at most `per_step` in a step. `memory`: nullptr if none is
  // shared.
  void prepare(std::unique_ptr<net::GradientMemory> memory, std::size_t size, std::size_t per_step);
  // nullptr: all gradients are sent.
  [[nodiscard]] net::GradientMemory* memory() const noexcept { return memory_.get(); }

  // Returns where to compute the next gradient, [size]; page-aligned if it is shared.
  std::span<float> begin();
  // The same one again.
  [[nodiscard]] std::span<float> current() const noexcept { return current_; }
  // The gradient is one of several of a step, and was pushed: the next one is placed elsewhere.
  void pushed() noexcept { ++pushed_; }
  // The pushed gradients have been used.
  void begin_step() noexcept { pushed_ = 0; }
  // Leaves the memory to the ps that map it, and takes new memory. If the system has none,
  // gradients are sent from now on. REQUIRES: memory() != nullptr; begin() follows.
  void leave_memory();

 private:
  std::size_t size_ = 0;
  std::unique_ptr<net::GradientMemory> memory_;
  std::size_t room_ = 0;     // the number of gradients that fit there
  std::size_t pushed_ = 0;   // of the step
  math::AlignedVector own_;  // for gradients that do not fit there; reusable once they are sent
  std::span<float> current_;
};

}  // namespace disttf::roles
