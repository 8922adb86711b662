// The parameters of all ps as one vector, read where they lie in the ps's memory: each range is
// mapped behind the one before it, which whole pages allow (math::shard_range()).
//
// A ps makes its steps from one buffer into the other, so that two windows serve a whole run; a
// third is mapped in place of the older one when a ps was restarted.
//
// Not thread-safe: the computing thread owns it.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "net/transport/shared_memory.h"

namespace disttf::roles {

class ParameterWindows {
 public:
  // `pieces`: by ps index. Valid until the second call from now. Empty where they cannot be mapped
  // so: a ps of ours lets them, another program may not.
  [[nodiscard]] std::span<const std::byte> over(std::span<const net::JoinedView::Piece> pieces);

 private:
  std::array<std::unique_ptr<const net::JoinedView>, 2> windows_;
  std::size_t newest_ = 0;
};

}  // namespace disttf::roles
