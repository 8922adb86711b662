// Presents the bodies of several peers as one, read in place: each is mapped behind the one before
// it, which works because they are whole pages.
//
// A ps makes its steps alternately in two buffers, so two mappings serve a whole run. A third
// replaces the older one when a ps was restarted.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "net/memory/body_location.h"

namespace disttf::net {

class JoinedView;

class JoinedBodies {
 public:
  JoinedBodies();
  ~JoinedBodies();
  JoinedBodies(const JoinedBodies&) = delete;
  JoinedBodies& operator=(const JoinedBodies&) = delete;

  // Returns the bytes of `places` end to end. Valid until the second call after this one, and as
  // long as the caller keeps the places. Empty where they cannot be mapped so: a ps of disttf
  // always lays them out suitably, another program may not.
  [[nodiscard]] std::span<const std::byte> over(std::span<const BodyLocation> places);

 private:
  std::array<std::unique_ptr<const JoinedView>, 2> joined_;
  std::size_t newest_ = 0;
};

}  // namespace disttf::net
