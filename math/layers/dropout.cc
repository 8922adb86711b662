#include "math/layers/dropout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <stdexcept>
#include <string>

#include "math/random.h"

namespace disttf::math {
namespace {

// The bits of a draw's index, from the highest: 36 bits for the index of the example in its step, 6
// for the layer, 22 for groups of four elements.
constexpr unsigned kLayerBit = 22;
constexpr unsigned kPlaceBit = 28;
constexpr std::size_t kMostNumbers = std::size_t{4} << kLayerBit;

constexpr std::array<LayerField, 1> kDropoutFields = {{
    {.name = "rate",
     .about = "share of the numbers that are set to 0",
     .kind = LayerField::Kind::kFraction,
     .least = 0,
     .most = 1},
}};

class Dropout final : public Layer {
 public:
  Dropout(const Shape& input, double rate)
      : Layer(input, input),
        // 16 random bits decide about a number, so the rate is rounded to a multiple of 2^-16.
        threshold_(static_cast<std::uint64_t>(std::lround(rate * 65536.0))),
        // The remaining numbers grow in training, so that evaluation needs no scaling (inverted
        // dropout). The field's limit keeps the rate below 1.
        factor_(static_cast<float>(1.0 / (1.0 - rate))) {}

  [[nodiscard]] LayerOperation operation() const noexcept override { return Nothing{}; }
  [[nodiscard]] bool in_place() const noexcept override { return true; }
  [[nodiscard]] std::size_t kept_floats() const noexcept override { return output().size(); }

  void forward(const LayerPass& pass) const noexcept override {
    // In evaluation the layer is the identity, and in place there is nothing to do.
    if (pass.draws == nullptr) {
      return;
    }
    const std::size_t size = output().size();
    for (std::size_t row = pass.rows.begin; row < pass.rows.end; ++row) {
      float* const factors = pass.kept + row * size;
      draw(*pass.draws, pass.draws->first + row, factors);
      multiply(factors, pass.output + row * size);
    }
  }
  void backward(const LayerPass& pass) const noexcept override {
    const std::size_t size = output().size();
    for (std::size_t row = pass.rows.begin; row < pass.rows.end; ++row) {
      multiply(pass.kept + row * size, pass.input_delta + row * size);
    }
  }

 private:
  void draw(const LayerDraws& draws, std::uint64_t place, float* factors) const noexcept {
    const std::size_t size = output().size();
    // The numbers depend on the example's index in the step, not on the task or thread that
    // computes it.
    const std::uint64_t first = (place << kPlaceBit) | (std::uint64_t{draws.layer} << kLayerBit);
    std::array<std::uint64_t, 64> bits{};  // 4 numbers from each
    for (std::size_t begin = 0; begin < size; begin += 4 * bits.size()) {
      const std::size_t count = std::min(4 * bits.size(), size - begin);
      random_bits(draws.seed, static_cast<std::uint32_t>(Purpose::kDropout), draws.step,
                  first + begin / 4, std::span(bits).first((count + 3) / 4));
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t drawn = (bits[i / 4] >> (16 * (i % 4))) & 0xFFFFU;
        factors[begin + i] = drawn < threshold_ ? 0.0F : factor_;
      }
    }
  }
  void multiply(const float* factors, float* values) const noexcept {
    for (std::size_t i = 0; i < output().size(); ++i) {
      // forward() and backward() multiply by the same factors: the derivative of a product by a
      // constant.
      values[i] *= factors[i];
    }
  }

  std::uint64_t threshold_;
  float factor_;
};

constexpr LayerType kDropoutType{
    .name = "dropout",
    .about = "in training a share of the numbers is set to 0",
    .fields = kDropoutFields,
    .make = [](const LayerFields& fields, const Shape& input) -> std::unique_ptr<const Layer> {
      if (input.size() > kMostNumbers) {
        throw std::invalid_argument("dropout: " + std::to_string(input.size()) +
                                    " numbers are too many; at most " +
                                    std::to_string(kMostNumbers) + " are allowed");
      }
      return std::make_unique<Dropout>(input, fields.fraction("rate"));
    },
    .fields_for = [](const LayerOperation& /*operation*/) -> std::optional<LayerValues> {
      return std::nullopt;  // no layer is needed for the identity
    }};

}  // namespace

const LayerType& dropout() noexcept { return kDropoutType; }

}  // namespace disttf::math
