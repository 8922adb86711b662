#include "math/layers/flatten.h"

namespace disttf::math {
namespace {

class Flatten final : public Layer {
 public:
  explicit Flatten(const Shape& input) : Layer(input, {.channels = input.size()}) {}
  [[nodiscard]] LayerOperation operation() const noexcept override { return Flattening{}; }
  [[nodiscard]] bool in_place() const noexcept override { return true; }
  [[nodiscard]] bool computes() const noexcept override { return false; }
  void forward(const LayerPass& /*pass*/) const noexcept override {}
  void backward(const LayerPass& /*pass*/) const noexcept override {}
};

constexpr LayerType kFlatten{
    .name = "flatten",
    .about = "an image becomes the numbers that it consists of",
    .fields = {},
    .make = [](const LayerFields& /*fields*/, const Shape& input) -> std::unique_ptr<const Layer> {
      return std::make_unique<Flatten>(input);
    },
    .fields_for =
        [](const LayerOperation& operation) {
          return std::holds_alternative<Flattening>(operation) ? std::optional(LayerValues{})
                                                               : std::nullopt;
        }};

}  // namespace

const LayerType& flatten() noexcept { return kFlatten; }

}  // namespace disttf::math
