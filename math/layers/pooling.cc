#include "math/layers/pooling.h"

#include <stdexcept>
#include <string>

#include "math/kernels_table.h"

namespace disttf::math {
namespace {

constexpr std::size_t kMostWindow = 64;

constexpr std::array<LayerField, 2> kPoolingFields = {{
    {.name = "size",
     .about = "positions of a window, down and across",
     .least = 1,
     .most = double{kMostWindow}},
    {.name = "stride",
     .about = "positions from one window to the next; 0: as many as a window has",
     .least = 0,
     .most = double{kMostWindow},
     .otherwise = "0"},
}};

class Pooling : public Layer {
 public:
  explicit Pooling(const PoolingShape& shape)
      : Layer({.height = shape.height, .width = shape.width, .channels = shape.channels},
              {.height = shape.out_height, .width = shape.out_width, .channels = shape.channels}),
        shape_(shape) {}

 protected:
  [[nodiscard]] const PoolingShape& shape() const noexcept { return shape_; }

 private:
  PoolingShape shape_;
};

class MaxPooling final : public Pooling {
 public:
  using Pooling::Pooling;
  [[nodiscard]] LayerOperation operation() const noexcept override {
    return PoolingOfImage{.is_mean = false, .size = shape().size, .stride = shape().stride};
  }
  // The position of the largest number in each window, which alone receives the window's gradient.
  [[nodiscard]] std::size_t kept_floats() const noexcept override { return output().size(); }
  void forward(const LayerPass& pass) const noexcept override {
    for (std::size_t row = pass.rows.begin; row < pass.rows.end; ++row) {
      pass.kernels->max_pool(pass.input + row * input().size(), pass.output + row * output().size(),
                             pass.kept + row * output().size(), shape());
    }
  }
  void backward(const LayerPass& pass) const noexcept override {
    for (std::size_t row = pass.rows.begin; row < pass.rows.end; ++row) {
      pass.kernels->max_pool_backward(pass.output_delta + row * output().size(),
                                      pass.kept + row * output().size(),
                                      pass.input_delta + row * input().size(), shape());
    }
  }
};

class AveragePooling final : public Pooling {
 public:
  using Pooling::Pooling;
  [[nodiscard]] LayerOperation operation() const noexcept override {
    return PoolingOfImage{.is_mean = true, .size = shape().size, .stride = shape().stride};
  }
  void forward(const LayerPass& pass) const noexcept override {
    for (std::size_t row = pass.rows.begin; row < pass.rows.end; ++row) {
      pass.kernels->average_pool(pass.input + row * input().size(),
                                 pass.output + row * output().size(), shape());
    }
  }
  void backward(const LayerPass& pass) const noexcept override {
    for (std::size_t row = pass.rows.begin; row < pass.rows.end; ++row) {
      pass.kernels->average_pool_backward(pass.output_delta + row * output().size(),
                                          pass.input_delta + row * input().size(), shape());
    }
  }
};

template <typename Kind>
std::unique_ptr<const Layer> make_pooling(const LayerFields& fields, const Shape& input) {
  const std::size_t size = fields.whole("size");
  const std::size_t given = fields.whole("stride");
  // Windows without overlap are the usual case, so 0 stands for the window's size.
  const std::size_t stride = given == 0 ? size : given;
  // A window larger than the image would have no output.
  if (size > input.height || size > input.width) {
    throw std::invalid_argument("size: " + std::to_string(size) +
                                " is larger than the image, which is " + to_string(input));
  }
  // Only whole windows count; rows and columns left over at the end have no output.
  return std::make_unique<Kind>(PoolingShape{.height = input.height,
                                             .width = input.width,
                                             .channels = input.channels,
                                             .size = size,
                                             .stride = stride,
                                             .out_height = (input.height - size) / stride + 1,
                                             .out_width = (input.width - size) / stride + 1});
}

template <bool kIsMean>
std::optional<LayerValues> pooling_for(const LayerOperation& operation) {
  const auto* const of = std::get_if<PoolingOfImage>(&operation);
  if (of == nullptr || of->is_mean != kIsMean) {
    return std::nullopt;
  }
  // The stride is always explicit here, although 0 would mean the same where both are equal.
  return LayerValues{{"size", static_cast<double>(of->size)},
                     {"stride", static_cast<double>(of->stride)}};
}

constexpr LayerType kMaxPooling{.name = "max_pool",
                                .about = "of each window the largest number",
                                .fields = kPoolingFields,
                                .make = &make_pooling<MaxPooling>,
                                .fields_for = &pooling_for<false>};
constexpr LayerType kAveragePooling{.name = "average_pool",
                                    .about = "of each window the mean",
                                    .fields = kPoolingFields,
                                    .make = &make_pooling<AveragePooling>,
                                    .fields_for = &pooling_for<true>};

}  // namespace

const LayerType& max_pooling() noexcept { return kMaxPooling; }
const LayerType& average_pooling() noexcept { return kAveragePooling; }

}  // namespace disttf::math
