#include "math/losses/registry.h"

#include <array>
#include <cstddef>

#include "math/losses/mean_squared_error.h"
#include "math/losses/sigmoid_cross_entropy.h"
#include "math/losses/softmax_cross_entropy.h"

namespace disttf::math {
namespace {

// By LossKind.
constexpr std::array kLosses = {&softmax_cross_entropy, &sigmoid_cross_entropy,
                                &mean_squared_error};

}  // namespace

const LossType& loss_type(LossKind kind) noexcept {
  return kLosses.at(static_cast<std::size_t>(kind))();
}

std::span<const std::string_view> loss_names() noexcept {
  static const auto kNames = [] {
    std::array<std::string_view, kLosses.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) {
      names.at(i) = kLosses.at(i)().name;
    }
    return names;
  }();
  return kNames;
}

}  // namespace disttf::math
