// The shape of what a node of an ONNX file gives, and in which order the numbers of an image lie
// there: channels first (NCHW), as ONNX's own operators take them, or last (NHWC), as Keras has
// them and disttf keeps them.
//
// The shape of a graph's input alone does not say which of its sizes the channels are. So the order
// stays open until something decides it: an operator that takes channels first, a Transpose, the
// caller's wishes, or sizes of which only one can be a number of channels. What nothing decides is
// refused with the flag that does.
//
// Not thread-safe. What is refused throws std::invalid_argument with one sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "math/shape.h"
#include "roles/import/core/onnx_node.h"

namespace disttf::roles {

enum class ImageLayout : std::uint8_t { kChannelsFirst, kChannelsLast };

// What the command line says of the input, and what the file's metadata does.
struct InputWishes {
  std::optional<math::Shape> shape = std::nullopt;          // --input
  std::optional<ImageLayout> layout = std::nullopt;         // --input_layout
  std::optional<math::Shape> exported_from = std::nullopt;  // of the model that disttf exported
};

class ValueShape {
 public:
  // `where`: the file's name, which begins sentences; borrowed.
  ValueShape(const std::string& where, const InputWishes& wishes)
      : where_(where), wishes_(wishes) {}

  // The graph's input. `sizes`: without N; 1, 2 or 3 of them, each known.
  void begin(std::vector<std::int64_t> sizes);

  // Of one example, as disttf has it. REQUIRES for an image: is_decided().
  [[nodiscard]] const math::Shape& shape() const noexcept { return shape_; }
  void set_shape(const math::Shape& shape) noexcept { shape_ = shape; }  // what a layer gives
  [[nodiscard]] bool is_image() const noexcept { return is_image_; }
  [[nodiscard]] bool is_decided() const noexcept { return open_sizes_.empty(); }
  // An image whose channels come first; and one whose channels come last.
  [[nodiscard]] bool is_channels_first() const noexcept {
    return is_image_ && is_decided() && !is_turned_;
  }
  [[nodiscard]] bool is_channels_last() const noexcept {
    return is_image_ && is_decided() && is_turned_;
  }
  // [N, height, width], without a size for channels.
  [[nodiscard]] bool is_grey_plane() const noexcept { return open_sizes_.size() == 2; }
  // A row with the numbers of this image, channels first.
  [[nodiscard]] const std::optional<math::Shape>& flattened() const noexcept { return flattened_; }
  void forget_flattened() noexcept { flattened_.reset(); }
  // Whether the graph's input is read as an image, or as a row that --input calls one.
  [[nodiscard]] bool input_is_image() const noexcept { return input_is_image_; }

  // Fixes the order where it is open. `evidence`: what `node` takes; none: it takes either, and
  // what else is known decides. Returns a sentence where the evidence is at odds with the sizes.
  [[nodiscard]] std::optional<std::string> decide(const ChainNode& node,
                                                  std::optional<ImageLayout> evidence);
  // An image becomes a row; call it before the layer is added. REQUIRES: is_image(), is_decided().
  void flatten() noexcept;
  // Both decide, too, and refuse what is not supported.
  void transpose(const ChainNode& node);
  // To an image. `sizes`: as Reshape has them, with N; `is_input`: no layer has come yet.
  void reshape_to_image(const ChainNode& node, const std::vector<std::int64_t>& sizes,
                        bool is_input);

 private:
  void open(std::vector<std::int64_t> sizes);
  [[nodiscard]] ImageLayout known_layout(const ChainNode& node,
                                         std::optional<ImageLayout> evidence) const;

  const std::string& where_;
  InputWishes wishes_;
  math::Shape shape_;
  std::vector<std::int64_t> open_sizes_;  // of an image whose order is open, without N; else none
  bool is_image_ = false;
  bool is_turned_ = false;  // channels last
  bool input_is_image_ = false;
  std::optional<math::Shape> flattened_;
};

}  // namespace disttf::roles
