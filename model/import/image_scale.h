// The factor and offset that a model applies to pixels before its first layer, and their folding
// into that layer's weights.
//
// In disttf a layer gets x / 255. Here it gets x * factor + offset, where x is from 0 to 255 or, as
// the factor shows, from 0 to 1.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

namespace disttf::roles {

class ImageScale {
 public:
  // Adds a step. `type`: ONNX operator "Add", "Sub", "Mul" or "Div", by a constant.
  void then(std::string_view type, double value) noexcept {
    is_there_ = true;
    if (type == "Add" || type == "Sub") {
      offset_ += type == "Add" ? value : -value;
    } else {
      const double factor = type == "Mul" ? value : 1 / value;
      factor_ *= factor;
      offset_ *= factor;
    }
  }

  [[nodiscard]] bool has_offset() const noexcept { return offset_ != 0; }
  // Whether it equals disttf's own scaling.
  [[nodiscard]] bool is_usual() const noexcept {
    constexpr double kRounding = 1e-6;  // of 1/255, for one
    return !is_there_ || (!has_offset() && std::abs(factor() - 1) <= kRounding);
  }

  // Folds both into weights [..., units] and biases [units], and resets them.
  void move_into(std::vector<float>& weights, std::vector<float>& biases) noexcept {
    if (!is_usual()) {
      for (std::size_t i = 0; i < weights.size(); ++i) {
        biases[i % biases.size()] += static_cast<float>(offset_ * double{weights[i]});
        weights[i] = static_cast<float>(factor() * double{weights[i]});
      }
    }
    *this = {};
  }

 private:
  [[nodiscard]] double factor() const noexcept {
    constexpr double kLeastOfFractions = 1.0 / 64;
    constexpr double kWhite = 255;
    return std::abs(factor_) < kLeastOfFractions ? factor_ * kWhite : factor_;
  }

  bool is_there_ = false;
  double factor_ = 1;
  double offset_ = 0;
};

}  // namespace disttf::roles
