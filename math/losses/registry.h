// The registry of the losses. To add one, write a file pair in this folder, a row of registry.cc
// and an enumerator in loss.h; --loss, the published configuration and the reports of a result
// follow.
#pragma once

#include <span>
#include <string_view>

#include "math/losses/loss.h"

namespace disttf::math {

[[nodiscard]] const LossType& loss_type(LossKind kind) noexcept;
// By LossKind.
[[nodiscard]] std::span<const std::string_view> loss_names() noexcept;

}  // namespace disttf::math
