#include "math/layers/convolution.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "math/convolution_products.h"
#include "math/kernels_table.h"
#include "math/model_spec.h"

namespace disttf::math {
namespace {

constexpr std::size_t kMostKernel = 64;

constexpr std::array<std::string_view, 2> kPaddings = {"same", "valid"};
constexpr std::array<std::string_view, 3> kConvolutionInitial = {"he", "truncated_normal", "zeros"};

constexpr std::array<LayerField, 5> kConvolutionFields = {{
    {.name = "channels", .about = "of the output", .least = 1, .most = double{kMaxUnits}},
    {.name = "kernel",
     .about = "positions that an output sees, down and across",
     .least = 1,
     .most = double{kMostKernel}},
    {.name = "stride",
     .about = "positions from one output to the next",
     .least = 1,
     .most = double{kMostKernel},
     .otherwise = "1"},
    {.name = "padding",
     .about = "`same`: zeros around the image keep its size; `valid`: none",
     .kind = LayerField::Kind::kWord,
     .words = kPaddings,
     .otherwise = kPaddings[0]},
    {.name = "initial",
     .about = "of the weights, n sums each: `he`, deviation sqrt(2/n); `truncated_normal`, "
              "1/sqrt(n); or `zeros`",
     .kind = LayerField::Kind::kWord,
     .words = kConvolutionInitial,
     .otherwise = kConvolutionInitial[0]},
}};

// An axis of the image: its padding on both sides, and the number of outputs.
struct Axis {
  std::size_t before = 0;
  std::size_t after = 0;
  std::size_t outputs = 0;
};

Axis axis_of(std::size_t length, std::size_t kernel, std::size_t stride, bool is_same) {
  if (!is_same) {
    return {.outputs = (length - kernel) / stride + 1};
  }
  // TensorFlow's SAME padding: as few zeros as give ceil(length / stride) outputs, the odd one
  // after the image.
  const std::size_t outputs = (length + stride - 1) / stride;
  const std::size_t needed = (outputs - 1) * stride + kernel;
  const std::size_t padding = needed > length ? needed - length : 0;
  return {.before = padding / 2, .after = padding - padding / 2, .outputs = outputs};
}

struct Geometry {
  std::size_t kernel = 0;
  std::size_t stride = 1;
  bool is_same = true;
  Axis down;
  Axis across;
};

class Convolution final : public Layer {
 public:
  Convolution(const Shape& input, std::size_t channels, const Geometry& geometry, double deviation)
      : Layer(input,
              {.height = geometry.down.outputs,
               .width = geometry.across.outputs,
               .channels = channels},
              {{.suffix = "w",
                .shape = {geometry.kernel, geometry.kernel, input.channels, channels},
                .deviation = deviation},
               {.suffix = "b", .shape = {channels}, .decays = false}}),
        geometry_(geometry),
        forward_{.height = geometry.down.before + input.height + geometry.down.after,
                 .width = geometry.across.before + input.width + geometry.across.after,
                 .channels = input.channels,
                 .kernel_height = geometry.kernel,
                 .kernel_width = geometry.kernel,
                 .stride = geometry.stride,
                 .out_height = geometry.down.outputs,
                 .out_width = geometry.across.outputs,
                 .units = channels},
        // Computes every position of the input; with larger strides the outputs lie `stride` apart.
        // The gradient by the input is a convolution of the output's gradient, padded by kernel - 1
        // on both sides, with the rotated kernel.
        backward_{.height = input.height + geometry.kernel - 1,
                  .width = input.width + geometry.kernel - 1,
                  .channels = channels,
                  .kernel_height = geometry.kernel,
                  .kernel_width = geometry.kernel,
                  .stride = 1,
                  .out_height = input.height,
                  .out_width = input.width,
                  .units = input.channels},
        no_start_(input.channels) {}

  [[nodiscard]] LayerOperation operation() const noexcept override {
    return ConvolutionOfImage{.kernel = geometry_.kernel,
                              .units = forward_.units,
                              .stride = geometry_.stride,
                              .is_same = geometry_.is_same,
                              .padding = {geometry_.down.before, geometry_.across.before,
                                          geometry_.down.after, geometry_.across.after}};
  }
  [[nodiscard]] std::uint64_t multiply_adds() const noexcept override {
    return std::uint64_t{gradient_rows()} * output().size();
  }
  [[nodiscard]] bool takes_pixels(const Products& /*products*/) const noexcept override {
    return true;
  }
  [[nodiscard]] std::size_t kept_floats() const noexcept override { return image_size(forward_); }
  [[nodiscard]] std::size_t scratch_floats(const Products& products) const noexcept override {
    if (!products.rounds_operands) {
      return spread_floats();
    }
    // A thread runs one pass of a layer at a time, so both directions share the memory.
    return std::max(convolution_scratch_floats(forward_),
                    spread_floats() + convolution_scratch_floats(backward_));
  }
  [[nodiscard]] std::size_t prepared_floats() const noexcept override {
    return gradient_rows() * forward_.units;
  }
  [[nodiscard]] std::size_t gradient_rows() const noexcept override {
    return forward_.kernel_height * forward_.kernel_width * forward_.channels;
  }

  // The kernel rotated by 180 degrees, with the channels of input and output exchanged.
  void prepare(const LayerPass& pass, float* prepared) const noexcept override {
    // Once per batch, so that all threads and images read the same rotated copy.
    const std::size_t places = geometry_.kernel * geometry_.kernel;
    const std::size_t channels = forward_.channels;
    const std::size_t units = forward_.units;
    for (std::size_t place = 0; place < places; ++place) {
      const float* const from = pass.variables[0] + place * channels * units;
      float* const to = prepared + (places - 1 - place) * channels * units;
      for (std::size_t c = 0; c < channels; ++c) {
        for (std::size_t u = 0; u < units; ++u) {
          to[u * channels + c] = from[c * units + u];
        }
      }
    }
  }

  void forward(const LayerPass& pass) const noexcept override {
    for (std::size_t row = pass.rows.begin; row < pass.rows.end; ++row) {
      float* const image = pass.kept + row * kept_floats();
      // The padded image stays in `kept`, because gradient() reads it once more.
      pad(pass, row, image);
      convolve_image(pass, image, pass.variables[0], pass.variables[1],
                     pass.output + row * output().size(), forward_, pass.scratch);
    }
  }

  void backward(const LayerPass& pass) const noexcept override {
    for (std::size_t row = pass.rows.begin; row < pass.rows.end; ++row) {
      spread_delta(pass.output_delta + row * output().size(), pass.scratch);
      convolve_image(pass, pass.scratch, pass.prepared, no_start_.data(),
                     pass.input_delta + row * input().size(), backward_,
                     pass.scratch + spread_floats());
    }
  }

  void gradient(const LayerPass& pass, Rows part,
                std::span<float* const> gradients) const noexcept override {
    // Exactly one part computes the biases' gradient: the one with the first rows.
    if (part.begin == 0) {
      const std::size_t positions = forward_.out_height * forward_.out_width;
      pass.kernels->column_sums(pass.output_delta, gradients[1], pass.rows.count() * positions,
                                forward_.units);
    }
    // Each image adds its share below, in the order of the batch, so the sum does not depend on
    // threads.
    std::fill(gradients[0] + part.begin * forward_.units, gradients[0] + part.end * forward_.units,
              0.0F);
    for (std::size_t row = pass.rows.begin; row < pass.rows.end; ++row) {
      const float* const image = pass.kept + row * kept_floats();
      const float* const delta = pass.output_delta + row * output().size();
      if (pass.products->rounds_operands) {
        convolve_gradient(*pass.products, image, delta, gradients[0], part.begin, part.end,
                          forward_, pass.scratch);
      } else {
        pass.kernels->convolve_gradient(image, delta, gradients[0], part.begin, part.end, forward_);
      }
    }
  }

 private:
  static std::size_t image_size(const ConvolutionShape& shape) noexcept {
    return shape.height * shape.width * shape.channels;
  }
  // Of spread_delta(), in whole cache lines, so that what follows is aligned.
  [[nodiscard]] std::size_t spread_floats() const noexcept {
    constexpr std::size_t kLine = 64 / sizeof(float);
    return (image_size(backward_) + kLine - 1) / kLine * kLine;
  }

  static void convolve_image(const LayerPass& pass, const float* image, const float* weights,
                             const float* start, float* to, const ConvolutionShape& shape,
                             float* scratch) noexcept {
    if (pass.products->rounds_operands) {
      convolve(*pass.products, image, weights, start, to, shape, scratch);
    } else {
      pass.kernels->convolve(image, weights, start, to, shape);
    }
  }

  // Copies the image with zeros around it.
  void pad(const LayerPass& pass, std::size_t row, float* image) const noexcept {
    const std::size_t from_row = input().width * input().channels;
    const std::size_t to_row = forward_.width * forward_.channels;
    const std::size_t before = geometry_.across.before * forward_.channels;
    const std::size_t first = row * input().size();
    std::fill_n(image, geometry_.down.before * to_row, 0.0F);
    float* to = image + geometry_.down.before * to_row;
    for (std::size_t y = 0; y < input().height; ++y, to += to_row) {
      std::fill_n(to, before, 0.0F);
      if (pass.pixels != nullptr) {
        pass.kernels->pixels_to_floats(pass.pixels + first + y * from_row, to + before, from_row);
      } else {
        std::copy_n(pass.input + first + y * from_row, from_row, to + before);
      }
      std::fill(to + before + from_row, to + to_row, 0.0F);
    }
    std::fill_n(to, geometry_.down.after * to_row, 0.0F);
  }

  // The gradient by the output of one row, each position at the first number that it sees.
  void spread_delta(const float* delta, float* image) const noexcept {
    const std::size_t channels = backward_.channels;
    // SAME padding is at most kernel - 1 in all, so neither offset is negative.
    const std::size_t top = geometry_.kernel - 1 - geometry_.down.before;
    const std::size_t left = geometry_.kernel - 1 - geometry_.across.before;
    std::fill_n(image, image_size(backward_), 0.0F);
    for (std::size_t y = 0; y < forward_.out_height; ++y) {
      float* to = image + ((top + y * geometry_.stride) * backward_.width + left) * channels;
      for (std::size_t x = 0; x < forward_.out_width; ++x, delta += channels) {
        std::copy_n(delta, channels, to);
        to += geometry_.stride * channels;
      }
    }
  }

  Geometry geometry_;
  ConvolutionShape forward_;
  ConvolutionShape backward_;
  std::vector<float> no_start_;  // an input's delta starts from 0
};

double deviation_of(std::string_view initial, std::size_t sums) {
  if (initial == "zeros") {
    return 0.0;
  }
  return std::sqrt((initial == "he" ? 2.0 : 1.0) / static_cast<double>(sums));
}

std::unique_ptr<const Layer> make_convolution(const LayerFields& fields, const Shape& input) {
  const std::size_t kernel = fields.whole("kernel");
  const std::size_t stride = fields.whole("stride");
  const bool is_same = fields.word("padding") == "same";
  if (!is_same && (kernel > input.height || kernel > input.width)) {
    throw std::invalid_argument("kernel: " + std::to_string(kernel) +
                                " is larger than the image, which is " + to_string(input) +
                                ", and there is no padding");
  }
  const Geometry geometry{.kernel = kernel,
                          .stride = stride,
                          .is_same = is_same,
                          .down = axis_of(input.height, kernel, stride, is_same),
                          .across = axis_of(input.width, kernel, stride, is_same)};
  return std::make_unique<Convolution>(
      input, fields.whole("channels"), geometry,
      deviation_of(fields.word("initial"), kernel * kernel * input.channels));
}

std::optional<LayerValues> convolution_for(const LayerOperation& operation) {
  const auto* const of = std::get_if<ConvolutionOfImage>(&operation);
  if (of == nullptr) {
    return std::nullopt;
  }
  return LayerValues{{"channels", static_cast<double>(of->units)},
                     {"kernel", static_cast<double>(of->kernel)},
                     {"stride", static_cast<double>(of->stride)},
                     {"padding", std::string(of->is_same ? kPaddings[0] : kPaddings[1])}};
}

constexpr LayerType kConvolution{.name = "conv2d",
                                 .about = "each output sees a square of positions around it",
                                 .fields = kConvolutionFields,
                                 .make = &make_convolution,
                                 .fields_for = &convolution_for};

}  // namespace

const LayerType& convolution() noexcept { return kConvolution; }

}  // namespace disttf::math
