#include "math/evaluation.h"

#include <algorithm>
#include <cmath>

namespace disttf::math {
namespace {

double share(std::uint64_t part, std::uint64_t all) noexcept {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

}  // namespace

double Evaluation::accuracy() const noexcept {
  return is_told ? told_accuracy.value_or(0) : share(correct, rows);
}

double Evaluation::precision(std::size_t one) const noexcept {
  return share(count(one, one), judged_as(one));
}

double Evaluation::recall(std::size_t one) const noexcept {
  return share(count(one, one), of_class(one));
}

std::size_t judged_class(std::span<const float> logits) noexcept {
  std::size_t best = 0;
  for (std::size_t each = 0; each < logits.size(); ++each) {
    // A comparison with NaN is false, so a model that has diverged would otherwise seem to choose a
    // class.
    if (std::isnan(logits[each])) {
      return logits.size();
    }
    best = logits[each] > logits[best] ? each : best;
  }
  return best;
}

std::optional<double> area_under_curve(std::span<Margin> margins) {
  if (std::ranges::any_of(margins,
                          [](const Margin& each) { return std::isnan(each.towards_one); })) {
    return std::nullopt;
  }
  // NaN has no place in the order that sort requires, which is why the test above comes first.
  std::ranges::sort(margins, {}, &Margin::towards_one);
  // The Mann-Whitney statistic: for each example of class 1 the number of examples of class 0 below
  // it, plus half of those with an equal margin.
  double pairs = 0;
  std::uint64_t zeros = 0;  // of class 0, below the current margin
  for (std::size_t begin = 0, end = 0; begin < margins.size(); begin = end) {
    std::uint64_t ones = 0;
    // Equal margins form one group, because the order of its members must not matter.
    for (; end < margins.size() && margins[end].towards_one == margins[begin].towards_one; ++end) {
      ones += margins[end].is_one ? 1U : 0U;
    }
    const std::uint64_t beside = end - begin - ones;
    pairs +=
        static_cast<double>(ones) * (static_cast<double>(zeros) + static_cast<double>(beside) / 2);
    zeros += beside;
  }
  const double all = static_cast<double>(zeros) * static_cast<double>(margins.size() - zeros);
  return all == 0 ? std::nullopt : std::optional(pairs / all);
}

std::uint64_t Evaluation::of_class(std::size_t label) const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t judged = 0; judged < classes; ++judged) {
    sum += count(label, judged);
  }
  return sum;
}

std::uint64_t Evaluation::judged_as(std::size_t judged) const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t label = 0; label < classes; ++label) {
    sum += count(label, judged);
  }
  return sum;
}

}  // namespace disttf::math
