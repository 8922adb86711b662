#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

#include "tests/model/export_fixture.h"

namespace disttf::roles {
namespace {

using Numbers = std::vector<double>;

class Reference {
 public:
  Reference(const AnswerStep& step, const Numbers& in) : step_(step), in_(in) {}

  Numbers operator()(const InputScaling& scaling) const {
    Numbers out = in_;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double mean = scaling.means.empty() ? 0.0 : double{scaling.means[i]};
      out[i] = (out[i] - mean) * scaling.factors[scaling.factors.size() == 1 ? 0 : i];
    }
    return out;
  }
  Numbers operator()(const Imaging& /*imaging*/) const { return in_; }
  Numbers operator()(const math::Flattening& /*flattening*/) const { return in_; }
  Numbers operator()(const Probabilities& /*probabilities*/) const {
    Numbers out;
    double sum = 0;
    for (const double x : in_) {
      sum += std::exp(x);
    }
    for (const double x : in_) {
      out.push_back(std::exp(x) / sum);
    }
    return out;
  }
  Numbers operator()(const OutputScaling& scaling) const {
    return {in_[0] / double{scaling.scale} + double{scaling.mean}};
  }
  Numbers operator()(const math::DenseProduct& product) const {
    Numbers out(step_.variables[1].begin(), step_.variables[1].end());
    for (std::size_t i = 0; i < in_.size(); ++i) {
      for (std::size_t u = 0; u < product.units; ++u) {
        out[u] += in_[i] * step_.variables[0][i * product.units + u];
      }
    }
    return out;
  }
  Numbers operator()(const math::ConvolutionOfImage& of) const {
    Numbers out(step_.output.size());
    for (std::size_t y = 0; y < step_.output.height; ++y) {
      for (std::size_t x = 0; x < step_.output.width; ++x) {
        for (std::size_t u = 0; u < of.units; ++u) {
          out[(y * step_.output.width + x) * of.units + u] = convolved(of, y, x, u);
        }
      }
    }
    return out;
  }
  Numbers operator()(const math::PoolingOfImage& of) const {
    Numbers out;
    for (std::size_t y = 0; y < step_.output.height; ++y) {
      for (std::size_t x = 0; x < step_.output.width; ++x) {
        for (std::size_t c = 0; c < step_.output.channels; ++c) {
          out.push_back(pooled(of, y, x, c));
        }
      }
    }
    return out;
  }
  Numbers operator()(const math::ElementFunction& function) const {
    Numbers out = in_;
    for (double& x : out) {
      x = function == math::ElementFunction::kRelu   ? std::max(x, 0.0)
          : function == math::ElementFunction::kTanh ? std::tanh(x)
                                                     : 1 / (1 + std::exp(-x));
    }
    return out;
  }
  Numbers operator()(const math::ChannelNormalization& of) const {
    Numbers out = in_;
    const auto& v = step_.variables;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t c = i % v[0].size();
      out[i] =
          (out[i] - v[2][c]) / std::sqrt(double{v[3][c]} + double{of.epsilon}) * v[0][c] + v[1][c];
    }
    return out;
  }

 private:
  [[nodiscard]] double at(std::size_t y, std::size_t x, std::size_t c) const {
    return in_[(y * step_.input.width + x) * step_.input.channels + c];
  }
  [[nodiscard]] double convolved(const math::ConvolutionOfImage& of, std::size_t y, std::size_t x,
                                 std::size_t u) const {
    double sum = step_.variables[1][u];
    std::size_t weight = u;
    for (std::size_t i = 0; i < of.kernel; ++i) {
      for (std::size_t j = 0; j < of.kernel; ++j) {
        const std::size_t row = y * of.stride + i - of.padding[0];
        const std::size_t column = x * of.stride + j - of.padding[1];
        for (std::size_t c = 0; c < step_.input.channels; ++c, weight += of.units) {
          if (row < step_.input.height && column < step_.input.width) {
            sum += at(row, column, c) * step_.variables[0][weight];
          }
        }
      }
    }
    return sum;
  }
  [[nodiscard]] double pooled(const math::PoolingOfImage& of, std::size_t y, std::size_t x,
                              std::size_t c) const {
    double largest = -std::numeric_limits<double>::infinity();
    double sum = 0;
    for (std::size_t i = 0; i < of.size; ++i) {
      for (std::size_t j = 0; j < of.size; ++j) {
        const double value = at(y * of.stride + i, x * of.stride + j, c);
        largest = std::max(largest, value);
        sum += value;
      }
    }
    return of.is_mean ? sum / static_cast<double>(of.size * of.size) : largest;
  }

  const AnswerStep& step_;
  const Numbers& in_;
};

}  // namespace

std::vector<double> answer_by(const AnswerSteps& steps, std::vector<double> example) {
  for (const AnswerStep& step : steps.steps) {
    example = std::visit(Reference(step, example), step.operation);
  }
  return example;
}

}  // namespace disttf::roles
