// What a layer computes in inference, in terms that other programs share. Exporters and importers
// use these operations and need not know the types of layers.
//
// Values only; callable from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>

namespace disttf::math {

// in w + b, over all numbers of an example. Variables: w [inputs, units], b [units].
struct DenseProduct {
  std::size_t units = 0;
  friend bool operator==(const DenseProduct&, const DenseProduct&) = default;
};

// Convolution of an image, as in math/layers/convolution.h. Variables: w [kernel, kernel, channels,
// units], b [units].
struct ConvolutionOfImage {
  std::size_t kernel = 0;
  std::size_t units = 0;
  std::size_t stride = 1;
  bool is_same = true;  // TensorFlow's SAME padding; otherwise none
  // Rows or columns of zeros above, left, below and right of the image.
  std::array<std::size_t, 4> padding{};
  friend bool operator==(const ConvolutionOfImage&, const ConvolutionOfImage&) = default;
};

// Pooling over windows that lie within the image, for each channel separately.
struct PoolingOfImage {
  bool is_mean = false;  // otherwise the largest
  std::size_t size = 0;
  std::size_t stride = 0;
  friend bool operator==(const PoolingOfImage&, const PoolingOfImage&) = default;
};

// A function of each number separately.
enum class ElementFunction : std::uint8_t { kRelu, kTanh, kSigmoid };

// gamma (x - mean) / sqrt(variance + epsilon) + beta, for each channel. Variables, each [channels]:
// gamma, beta, mean, variance.
struct ChannelNormalization {
  float epsilon = 0;
  friend bool operator==(const ChannelNormalization&, const ChannelNormalization&) = default;
};

// An image becomes a flat list of its numbers.
struct Flattening {
  friend bool operator==(const Flattening&, const Flattening&) = default;
};

// Identity: the layer has an effect only in training.
struct Nothing {
  friend bool operator==(const Nothing&, const Nothing&) = default;
};

using LayerOperation = std::variant<DenseProduct, ConvolutionOfImage, PoolingOfImage,
                                    ElementFunction, ChannelNormalization, Flattening, Nothing>;

}  // namespace disttf::math
