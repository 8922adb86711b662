// Bodies of several peers as one, read where each of them has left its part: each is mapped behind
// the one before it, which whole pages allow.
//
// A ps makes its steps from one buffer into the other, so that two mappings serve a whole run; a
// third takes the place of the older one when a ps was restarted.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "net/transport/body_place.h"

namespace disttf::net {

class JoinedView;

class JoinedBodies {
 public:
  JoinedBodies();
  ~JoinedBodies();
  JoinedBodies(const JoinedBodies&) = delete;
  JoinedBodies& operator=(const JoinedBodies&) = delete;

  // The places' bytes end to end; valid until the second call from now, and for as long as the
  // places are kept. Empty where they cannot be mapped so: a ps of ours lets them, another program
  // may not.
  [[nodiscard]] std::span<const std::byte> over(std::span<const BodyPlace> places);

 private:
  std::array<std::unique_ptr<const JoinedView>, 2> joined_;
  std::size_t newest_ = 0;
};

}  // namespace disttf::net
