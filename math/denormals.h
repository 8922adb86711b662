// Denormals: float32 numbers below 1.2e-38, which processors compute with about a hundred times
// slower than with others.
//
// Training is full of them: the mean gradient of a weight that is no longer used shrinks by a
// constant factor every step (momentum, adam), and probabilities of wrong classes are as small.
#pragma once

#include <cstdint>

namespace disttf::math {

// From now on this thread, and every thread that it starts, takes denormals for 0 and makes 0 of
// results that would be one. Changes low bits of what is computed, so all tasks of a run do it.
void flush_denormals() noexcept;

// The same for as long as the object lives; then it is for this thread as it was before.
class FlushedDenormals {
 public:
  FlushedDenormals() noexcept;
  ~FlushedDenormals();
  FlushedDenormals(const FlushedDenormals&) = delete;
  FlushedDenormals& operator=(const FlushedDenormals&) = delete;

 private:
  const std::uint64_t before_;  // the processor's word for it
};

}  // namespace disttf::math
