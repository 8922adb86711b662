#include "roles/ps/core/gradient_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "math/clip.h"
#include "math/finite.h"
#include "math/model.h"

namespace disttf::roles {
namespace {

// How much longer a gradient may be than its trainer clipped it to: by the rounding of the clipping
// itself, and to what is sent. In a block of 16 numbers that share an exponent (math/block_float.h)
// each may grow by half of the last place of the largest: of 4 bits all but one by as much again.
constexpr double growth_by_rounding(WireDtype dtype) noexcept {
  return dtype == WireDtype::kInt4 ? 1.3 : 1.01;
}

}  // namespace

GradientCheck::GradientCheck(const RunConfig& config, math::Range range)
    : isa_(config.isa),
      most_(growth_by_rounding(config.wire_dtype) * double{config.max_gradient_norm}),
      max_norm_(config.max_gradient_norm) {
  std::size_t begin = 0;
  for (const math::RunningRange& running : math::layout_of(config.model).running(range)) {
    if (begin < running.range.begin) {
      trained_.push_back({.begin = begin, .end = running.range.begin});
    }
    begin = running.range.end;
  }
  if (begin < range.size()) {
    trained_.push_back({.begin = begin, .end = range.size()});
  }
}

std::optional<std::string> GradientCheck::fault_in(std::span<const float> gradient) const {
  if (!math::all_finite(gradient, isa_)) {
    const auto count =
        std::ranges::count_if(gradient, [](float each) { return !std::isfinite(each); });
    return fmt::format(
        "has values that are no numbers, {} of {}: training has diverged, or the machine errs",
        count, gradient.size());
  }
  if (max_norm_ == 0) {
    return std::nullopt;
  }
  const double norm = math::norm_of(gradient, trained_, isa_);
  if (norm > most_) {
    return fmt::format("has a norm of {:g} here, --max_gradient_norm is {:g}", norm, max_norm_);
  }
  return std::nullopt;
}

}  // namespace disttf::roles
