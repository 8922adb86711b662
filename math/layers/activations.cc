#include "math/layers/activations.h"

#include "math/kernels_table.h"

namespace disttf::math {
namespace {

class Relu final : public Layer {
 public:
  explicit Relu(const Shape& input) : Layer(input, input) {}
  [[nodiscard]] bool in_place() const noexcept override { return true; }
  void forward(const LayerPass& pass) const noexcept override {
    const std::size_t size = output().size();
    pass.kernels->relu(pass.output + pass.rows.begin * size, pass.rows.count() * size);
  }
  void backward(const LayerPass& pass) const noexcept override {
    const std::size_t size = output().size();
    const std::size_t first = pass.rows.begin * size;
    pass.kernels->relu_backward(pass.output + first, pass.input_delta + first,
                                pass.rows.count() * size);
  }
};

constexpr LayerType kRelu{
    .name = "relu",
    .about = "max(x, 0)",
    .fields = {},
    .make = [](const LayerFields& /*fields*/, const Shape& input) -> std::unique_ptr<const Layer> {
      return std::make_unique<Relu>(input);
    }};

}  // namespace

const LayerType& relu() noexcept { return kRelu; }

}  // namespace disttf::math
