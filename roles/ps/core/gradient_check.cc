#include "roles/ps/core/gradient_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "math/model.h"
#include "math/norm.h"

namespace disttf::roles {
namespace {

// How much the norm of a gradient may exceed the value to which its trainer clipped it: by rounding
// in the clipping itself, and in the conversion to the wire format. In a block of 16 numbers that
// share an exponent (math/rounding.h), each may grow by half a unit of the largest number's last
// place. With 4 bits, all numbers but one may grow by as much again.
constexpr double growth_by_rounding(WireDtype dtype) noexcept {
  return dtype == WireDtype::kInt4 ? 1.3 : 1.01;
}

}  // namespace

GradientCheck::GradientCheck(const RunConfig& config, math::Range range)
    : isa_(config.isa),
      most_(growth_by_rounding(config.wire_dtype) * double{config.max_gradient_norm}),
      max_norm_(config.max_gradient_norm),
      layout_(math::layout_of(config.model)),
      begin_(range.begin) {
  // Running statistics are not gradients, so the norm leaves them out.
  std::size_t begin = 0;
  for (const math::RunningRange& running : layout_.running(range)) {
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
  // This check is vectorized; the slow count of the values is made only for a faulty gradient.
  if (!math::all_finite(gradient, isa_)) {
    const auto is_bad = [](float each) { return !std::isfinite(each); };
    std::string text = fmt::format(
        "has non-finite values, {} of {}: training has diverged, or the machine has a fault",
        std::ranges::count_if(gradient, is_bad), gradient.size());
    const auto at =
        static_cast<std::size_t>(std::ranges::find_if(gradient, is_bad) - gradient.begin());
    const auto variables = layout_.variables();
    const auto behind =
        std::ranges::upper_bound(variables, begin_ + at, {}, &math::Variable::offset);
    if (behind != variables.begin()) {
      text += "; the first is in " + std::prev(behind)->name;
    }
    return text;
  }
  // 0: the run sets no limit.
  if (max_norm_ == 0) {
    return std::nullopt;
  }
  const double norm = math::norm_of(gradient, trained_, isa_);
  // Compared with the margin, but reported with the limit that the user has set.
  if (norm > most_) {
    return fmt::format("has a norm of {:g} here, --max_gradient_norm is {:g}", norm, max_norm_);
  }
  return std::nullopt;
}

}  // namespace disttf::roles
