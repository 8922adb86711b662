// The training state of a ps's range at one step boundary, kept while training goes on.
#pragma once

#include <cstdint>

#include "math/aligned.h"

namespace disttf::roles {

// Which one it is.
struct CutName {
  std::uint64_t sequence = 0;  // of the push that asked for it
  std::uint64_t step = 0;
};

struct Cut {
  std::uint64_t sequence = 0;  // of the push that asked for it
  std::uint64_t step = 0;
  // [1 + optimizer tensors, range.size()]: the parameters, then each tensor of the optimizer's.
  math::AlignedVector values;
};

}  // namespace disttf::roles
