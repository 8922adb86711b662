#include "math/parameter_layout.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <numeric>
#include <utility>

namespace disttf::math {
namespace {

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}

// The part of the variable within `within`, relative to its beginning.
Range part_of(const Variable& variable, Range within) noexcept {
  const std::size_t begin = std::max(variable.offset, within.begin);
  const std::size_t end = std::min(variable.offset + variable.size, within.end);
  return begin < end ? Range{begin - within.begin, end - within.begin} : Range{};
}

}  // namespace

std::string shape_text(std::span<const std::size_t> shape) {
  std::string text;
  for (const std::size_t length : shape) {
    text += (text.empty() ? "" : ", ") + std::to_string(length);
  }
  return "[" + text + "]";
}

void ParameterLayout::add(std::string name, std::vector<std::size_t> shape, bool decays,
                          std::optional<float> momentum) {
  add({.name = std::move(name), .shape = std::move(shape), .decays = decays, .momentum = momentum});
}

void ParameterLayout::add(Variable variable) {
  variable.offset = size_;
  variable.size = std::accumulate(variable.shape.begin(), variable.shape.end(), std::size_t{1},
                                  std::multiplies<>{});
  // Padding after each variable keeps the next one aligned; it is part of the flat vector and
  // always 0.
  size_ = round_up(size_ + variable.size, kVariableAlignmentFloats);
  variables_.push_back(std::move(variable));
}

std::size_t ParameterLayout::parameter_count() const noexcept {
  return std::accumulate(variables_.begin(), variables_.end(), std::size_t{0},
                         [](std::size_t sum, const Variable& v) { return sum + v.size; });
}

std::vector<Range> ParameterLayout::decaying(Range within) const {
  std::vector<Range> parts;
  for (const Variable& variable : variables_) {
    const Range part = part_of(variable, within);
    // Weight decay would pull running statistics to 0, so they never decay.
    if (variable.decays && !variable.momentum && part.size() > 0) {
      parts.push_back(part);
    }
  }
  return parts;
}

std::vector<RunningRange> ParameterLayout::running(Range within) const {
  std::vector<RunningRange> parts;
  for (const Variable& variable : variables_) {
    const Range part = part_of(variable, within);
    if (variable.momentum && part.size() > 0) {
      parts.push_back({.range = part, .momentum = *variable.momentum});
    }
  }
  return parts;
}

std::vector<RateRange> ParameterLayout::rate_factors(Range within) const {
  std::vector<RateRange> parts;
  for (const Variable& variable : variables_) {
    const Range part = part_of(variable, within);
    if (variable.rate_factor != 1 && part.size() > 0) {
      parts.push_back({.range = part, .factor = variable.rate_factor});
    }
  }
  return parts;
}

std::vector<Range> ParameterLayout::trained() const {
  std::vector<Range> parts;
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    if (variables_[i].momentum) {
      continue;
    }
    const std::size_t begin = variables_[i].offset;
    // Reaches to the next variable: neighbours then merge into one range, and the padding between
    // them is 0.
    const std::size_t end = i + 1 < variables_.size() ? variables_[i + 1].offset : size_;
    if (!parts.empty() && parts.back().end == begin) {
      parts.back().end = end;
    } else {
      parts.push_back({begin, end});
    }
  }
  return parts;
}

Range shard_range(std::size_t size, std::size_t index, std::size_t count) {
  assert(index < count);
  const std::size_t pages = round_up(size, kShardAlignmentFloats) / kShardAlignmentFloats;
  // The first pages % count ranges take one page more. Computed this way, instead of as pages *
  // index / count, no product can overflow.
  const std::size_t share = pages / count;
  const std::size_t longer = pages % count;
  const auto border = [&](std::size_t i) {
    const std::size_t page = i * share + std::min(i, longer);
    return std::min(page * kShardAlignmentFloats, size);
  };
  // Both borders come from one function, so the ranges of all ps cover the vector without gap or
  // overlap.
  return {border(index), border(index + 1)};
}

}  // namespace disttf::math
