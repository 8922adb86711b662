// The wire format of a shard's gradients and parameters.
#include <algorithm>

#include "roles/ps/core/shard.h"

namespace disttf::roles {

std::span<std::byte> Shard::packed_inbox(std::size_t trainer, std::size_t bytes) {
  std::vector<std::byte>& packed = trainers_[trainer].packed;
  if (packed.empty()) {
    // Sized once for the longest gradient, so that a step allocates nothing.
    packed.resize(longest_gradient(wire_, range_.size()));
  }
  return std::span(packed).first(bytes);
}

// Fully synchronous: all trainers get the same answer, so it is rounded once.
std::span<const std::byte> Shard::as_sent(std::size_t trainer, const Answer& answer) {
  // The buffer in which the answer lies: each has rounded bytes of its own.
  const std::size_t buffer = answer.parameters.data() == buffers_[0].data() ? 0 : 1;
  Rounded& rounded = fully_synchronous_ ? rounded_[buffer] : trainers_[trainer].rounded;
  if (!fully_synchronous_ || !rounded.is_current) {
    rounded.bytes.resize(tensor_bytes(wire_, answer.parameters.size()));
    pack_tensor(wire_, answer.parameters, rounded.bytes);
    rounded.is_current = true;
  }
  return rounded.bytes;
}

}  // namespace disttf::roles
