// What a layer computes when the model answers, in words that other programs have, too: a model is
// written for these by what its layers do, and read from them, without knowing the types of layers.
//
// Values only; callable from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>

namespace disttf::math {

// in w + b, of all numbers of an example. Variables: w [inputs, units], b [units].
struct DenseProduct {
  std::size_t units = 0;
  friend bool operator==(const DenseProduct&, const DenseProduct&) = default;
};

// Of an image, as math/layers/convolution.h has it. Variables: w [kernel, kernel, channels, units],
// b [units].
struct ConvolutionOfImage {
  std::size_t kernel = 0;
  std::size_t units = 0;
  std::size_t stride = 1;
  bool is_same = true;  // padding as TensorFlow's SAME has it; else there is none
  // Positions of zeros above, left, below and right of the image.
  std::array<std::size_t, 4> padding{};
  friend bool operator==(const ConvolutionOfImage&, const ConvolutionOfImage&) = default;
};

// Of windows that lie within the image, each channel by itself.
struct PoolingOfImage {
  bool is_mean = false;  // else the largest
  std::size_t size = 0;
  std::size_t stride = 0;
  friend bool operator==(const PoolingOfImage&, const PoolingOfImage&) = default;
};

// Each number by itself.
enum class ElementFunction : std::uint8_t { kRelu, kTanh, kSigmoid };

// gamma (x - mean) / sqrt(variance + epsilon) + beta, of each channel. Variables, each [channels]:
// gamma, beta, mean, variance.
struct ChannelNormalization {
  float epsilon = 0;
  friend bool operator==(const ChannelNormalization&, const ChannelNormalization&) = default;
};

// An image becomes the numbers that it consists of.
struct Flattening {
  friend bool operator==(const Flattening&, const Flattening&) = default;
};

// The numbers stay what they are: the layer does something in training alone.
struct Nothing {
  friend bool operator==(const Nothing&, const Nothing&) = default;
};

using LayerOperation = std::variant<DenseProduct, ConvolutionOfImage, PoolingOfImage,
                                    ElementFunction, ChannelNormalization, Flattening, Nothing>;

}  // namespace disttf::math
