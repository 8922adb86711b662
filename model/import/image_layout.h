// The shape of a node's output in an ONNX file, and the order of an image's numbers: channels first
// (NCHW), as ONNX's own operators take them, or last (NHWC), as Keras and disttf keep them.
//
// The shape of a graph's input does not show which size is the channels. So the order stays
// undecided until something settles it: an operator that takes channels first, a Transpose, the
// caller's wishes, or sizes of which only one can be a number of channels. If nothing does, the
// error names the flag that decides.
//
// Not thread-safe. Unsupported input throws std::invalid_argument with one sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "math/shape.h"
#include "model/import/onnx_node.h"

namespace disttf::roles {

enum class ImageLayout : std::uint8_t { kChannelsFirst, kChannelsLast };

// What the command line and the file's metadata say about the input.
struct InputWishes {
  std::optional<math::Shape> shape = std::nullopt;          // --input
  std::optional<ImageLayout> layout = std::nullopt;         // --input_layout
  std::optional<math::Shape> exported_from = std::nullopt;  // of a model that disttf exported
};

class ValueShape {
 public:
  // `where`: the file's name, with which sentences begin; borrowed.
  ValueShape(const std::string& where, const InputWishes& wishes)
      : where_(where), wishes_(wishes) {}

  // Sets the graph's input. `sizes`: without N; 1, 2 or 3 known sizes.
  void begin(std::vector<std::int64_t> sizes);

  // Shape of one example, as in disttf. REQUIRES for an image: is_decided().
  [[nodiscard]] const math::Shape& shape() const noexcept { return shape_; }
  void set_shape(const math::Shape& shape) noexcept { shape_ = shape; }  // output of a layer
  [[nodiscard]] bool is_image() const noexcept { return is_image_; }
  [[nodiscard]] bool is_decided() const noexcept { return open_sizes_.empty(); }
  // An image with channels first; the next one: with channels last.
  [[nodiscard]] bool is_channels_first() const noexcept {
    return is_image_ && is_decided() && !is_turned_;
  }
  [[nodiscard]] bool is_channels_last() const noexcept {
    return is_image_ && is_decided() && is_turned_;
  }
  // [N, height, width], without a size for the channels.
  [[nodiscard]] bool is_grey_plane() const noexcept { return open_sizes_.size() == 2; }
  // The image whose numbers, channels first, this row holds.
  [[nodiscard]] const std::optional<math::Shape>& flattened() const noexcept { return flattened_; }
  void forget_flattened() noexcept { flattened_.reset(); }
  // Whether the graph's input is an image, or a row that --input declares one.
  [[nodiscard]] bool input_is_image() const noexcept { return input_is_image_; }

  // Fixes the order where it is undecided. `evidence`: the order that `node` takes; none: it takes
  // either, and other facts decide. Returns a warning where the evidence contradicts the sizes.
  [[nodiscard]] std::optional<std::string> decide(const ChainNode& node,
                                                  std::optional<ImageLayout> evidence);
  // Turns an image into a row; call it before adding the layer. REQUIRES: is_image(), is_decided().
  void flatten() noexcept;
  // Both may decide the order, too. They refuse what is not supported.
  void transpose(const ChainNode& node);
  // `sizes`: of the image, as in Reshape, with N; `is_input`: no layer has come yet.
  void reshape_to_image(const ChainNode& node, const std::vector<std::int64_t>& sizes,
                        bool is_input);

 private:
  void open(std::vector<std::int64_t> sizes);
  [[nodiscard]] ImageLayout known_layout(const ChainNode& node,
                                         std::optional<ImageLayout> evidence) const;

  const std::string& where_;
  InputWishes wishes_;
  math::Shape shape_;
  std::vector<std::int64_t> open_sizes_;  // without N, of an image in undecided order; else empty
  bool is_image_ = false;
  bool is_turned_ = false;  // channels last
  bool input_is_image_ = false;
  std::optional<math::Shape> flattened_;
};

}  // namespace disttf::roles
