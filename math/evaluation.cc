#include "math/evaluation.h"

namespace disttf::math {
namespace {

double share(std::uint64_t part, std::uint64_t all) noexcept {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

}  // namespace

double Evaluation::accuracy() const noexcept { return share(correct, rows); }

double Evaluation::precision(std::size_t one) const noexcept {
  return share(count(one, one), judged_as(one));
}

double Evaluation::recall(std::size_t one) const noexcept {
  return share(count(one, one), of_class(one));
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
