#include "roles/trainer/shell/parameter_windows.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "math/parameter_layout.h"

namespace disttf::roles {

// Else the ranges of several ps could not be mapped side by side.
static_assert(math::kShardAlignmentFloats * sizeof(float) % net::kPageBytes == 0);

std::span<const std::byte> ParameterWindows::over(std::span<const net::JoinedView::Piece> pieces) {
  if (pieces.size() == 1 && pieces.front().offset % net::kPageBytes == 0) {
    return pieces.front().view->bytes().subspan(pieces.front().offset, pieces.front().size);
  }
  for (std::size_t number = 0; number < windows_.size(); ++number) {
    if (windows_[number] && std::ranges::equal(windows_[number]->pieces(), pieces)) {
      newest_ = number;
      return windows_[number]->bytes();
    }
  }
  std::error_code error;
  auto window = net::JoinedView::map(pieces, error);
  if (!window) {
    return {};
  }
  newest_ = 1 - newest_;
  windows_[newest_] = std::move(window);
  return windows_[newest_]->bytes();
}

}  // namespace disttf::roles
