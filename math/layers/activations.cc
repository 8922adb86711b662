#include "math/layers/activations.h"

#include "math/kernels_table.h"

namespace disttf::math {
namespace {

// With two kernels of the table: one applies the function to values; the other converts the
// gradient by the output to that by the input.
template <ElementFunction kFunction, auto kForward, auto kBackward>
class Activation final : public Layer {
 public:
  explicit Activation(const Shape& input) : Layer(input, input) {}
  [[nodiscard]] LayerOperation operation() const noexcept override { return kFunction; }
  [[nodiscard]] bool in_place() const noexcept override { return true; }
  // All three derivatives are functions of the output: y > 0, 1 - y^2 and y (1 - y). So the input
  // need not be kept, and the layer can work in place.
  [[nodiscard]] bool needs_output() const noexcept override { return true; }
  void forward(const LayerPass& pass) const noexcept override {
    const std::size_t size = output().size();
    (pass.kernels->*kForward)(pass.output + pass.rows.begin * size, pass.rows.count() * size);
  }
  void backward(const LayerPass& pass) const noexcept override {
    const std::size_t size = output().size();
    const std::size_t first = pass.rows.begin * size;
    (pass.kernels->*kBackward)(pass.output + first, pass.input_delta + first,
                               pass.rows.count() * size);
  }
};

template <ElementFunction kFunction, auto kForward, auto kBackward>
std::unique_ptr<const Layer> make_activation(const LayerFields& /*fields*/, const Shape& input) {
  return std::make_unique<Activation<kFunction, kForward, kBackward>>(input);
}

template <ElementFunction kFunction>
std::optional<LayerValues> activation_for(const LayerOperation& operation) {
  const auto* const function = std::get_if<ElementFunction>(&operation);
  return function != nullptr && *function == kFunction ? std::optional(LayerValues{})
                                                       : std::nullopt;
}

constexpr LayerType kRelu{
    .name = "relu",
    .about = "max(x, 0)",
    .fields = {},
    .make = make_activation<ElementFunction::kRelu, &Kernels::relu, &Kernels::relu_backward>,
    .fields_for = &activation_for<ElementFunction::kRelu>};

constexpr LayerType kTanh{
    .name = "tanh",
    .about = "tanh(x)",
    .fields = {},
    .make = make_activation<ElementFunction::kTanh, &Kernels::tanh, &Kernels::tanh_backward>,
    .fields_for = &activation_for<ElementFunction::kTanh>};

constexpr LayerType kSigmoid{
    .name = "sigmoid",
    .about = "1 / (1 + exp(-x))",
    .fields = {},
    .make =
        make_activation<ElementFunction::kSigmoid, &Kernels::sigmoid, &Kernels::sigmoid_backward>,
    .fields_for = &activation_for<ElementFunction::kSigmoid>};

}  // namespace

const LayerType& relu() noexcept { return kRelu; }
const LayerType& tanh() noexcept { return kTanh; }
const LayerType& sigmoid() noexcept { return kSigmoid; }

}  // namespace disttf::math
