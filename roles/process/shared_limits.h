// The most that tasks of one machine offer each other of their memory
// (net/transport/shared_memory.h).
#pragma once

#include <cstddef>

namespace disttf::roles {

// In bytes. A trainer: a gradient of the whole vector of so many floats, and a cache line.
[[nodiscard]] std::size_t most_shared_by_trainer(std::size_t floats) noexcept;
// A ps: its range as often as it may need it, two times or once for each trainer besides, and where
// it leaves their answers.
[[nodiscard]] std::size_t most_shared_by_ps(std::size_t floats, std::size_t trainers) noexcept;

}  // namespace disttf::roles
