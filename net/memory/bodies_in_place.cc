#include "net/memory/bodies_in_place.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "net/memory/shared_memory.h"

namespace disttf::net {

JoinedBodies::JoinedBodies() = default;
JoinedBodies::~JoinedBodies() = default;

std::span<const std::byte> JoinedBodies::over(std::span<const BodyLocation> places) {
  // A single aligned part needs no mapping of its own.
  if (places.size() == 1 && places.front().view && places.front().offset % kPageBytes == 0) {
    return places.front().bytes();
  }
  for (std::size_t number = 0; number < joined_.size(); ++number) {
    if (joined_[number] && std::ranges::equal(joined_[number]->pieces(), places)) {
      newest_ = number;
      return joined_[number]->bytes();
    }
  }
  std::error_code error;
  auto joined = JoinedView::map(places, error);
  if (!joined) {
    return {};
  }
  // Replaces the older of the two mappings.
  newest_ = 1 - newest_;
  joined_[newest_] = std::move(joined);
  return joined_[newest_]->bytes();
}

}  // namespace disttf::net
