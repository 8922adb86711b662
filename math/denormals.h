// Denormals: float32 numbers below 1.2e-38, with which processors compute about a hundred times
// slower.
//
// Training produces many: the mean gradient of a weight that is no longer used shrinks by a
// constant factor every step (momentum, adam), and probabilities of wrong classes are that small.
#pragma once

#include <cstdint>

namespace disttf::math {

// From now on this thread, and every thread that it starts, treats denormal operands and results as
// 0. This changes low bits of results, so all tasks of a run call it.
void flush_denormals() noexcept;

// The same while the object lives; its destructor restores this thread's previous mode.
class FlushedDenormals {
 public:
  FlushedDenormals() noexcept;
  ~FlushedDenormals();
  FlushedDenormals(const FlushedDenormals&) = delete;
  FlushedDenormals& operator=(const FlushedDenormals&) = delete;

 private:
  const std::uint64_t before_;  // the processor's control word
};

}  // namespace disttf::math
