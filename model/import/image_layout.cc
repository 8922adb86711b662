#include "model/import/image_layout.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace disttf::roles {
namespace {

using Sizes = std::vector<std::int64_t>;

constexpr ImageLayout kFirst = ImageLayout::kChannelsFirst;
constexpr ImageLayout kLast = ImageLayout::kChannelsLast;

// "[N, 28, 28, 1]"
std::string sizes_text(const Sizes& sizes) {
  std::string text = "[N";
  for (const std::int64_t size : sizes) {
    text += ", " + std::to_string(size);
  }
  return text + "]";
}

// `sizes`: two for a grey image without channels, else three.
math::Shape shape_as(const Sizes& sizes, ImageLayout layout) {
  const auto size = [&sizes](std::size_t at) { return static_cast<std::size_t>(sizes[at]); };
  if (sizes.size() == 2) {
    return {.height = size(0), .width = size(1)};
  }
  return layout == kFirst ? math::Shape{.height = size(1), .width = size(2), .channels = size(0)}
                          : math::Shape{.height = size(0), .width = size(1), .channels = size(2)};
}

// Grey or colour, with or without transparency.
bool may_be_channels(std::int64_t size) { return size >= 1 && size <= 4; }

// The only layout for which these sizes are an image of 1 to 4 channels; nullopt: both or none.
std::optional<ImageLayout> usual_layout(const Sizes& sizes) {
  const bool is_first = may_be_channels(sizes.front());
  const bool is_last = may_be_channels(sizes.back());
  // Both possible or both impossible: the sizes prove nothing.
  if (is_first == is_last) {
    return std::nullopt;
  }
  return is_first ? kFirst : kLast;
}

// The only layout for which these sizes are `shape`; nullopt: both or none.
std::optional<ImageLayout> layout_with(const Sizes& sizes, const math::Shape& shape) {
  const bool is_first = shape_as(sizes, kFirst) == shape;
  const bool is_last = shape_as(sizes, kLast) == shape;
  if (is_first == is_last) {
    return std::nullopt;
  }
  return is_first ? kFirst : kLast;
}

// Resolves a Reshape's sizes, with N and at most one -1, for a value of `numbers` numbers. Returns
// them without N; nullopt: the product does not match.
std::optional<Sizes> resolved(const Sizes& with_n, std::size_t numbers) {
  Sizes sizes(with_n.begin() + 1, with_n.end());
  std::int64_t known = 1;
  for (const std::int64_t size : sizes) {
    // Neither factor exceeds `numbers`, so the product cannot overflow.
    if (size == 0 || size < -1 || std::max(known, size) > static_cast<std::int64_t>(numbers)) {
      return std::nullopt;
    }
    known *= size == -1 ? 1 : size;
  }
  const auto wanted = static_cast<std::int64_t>(numbers);
  const auto open = std::ranges::count(sizes, -1);
  // At most one size is open, and the known ones must divide the count.
  if (open > 1 || known == 0 || wanted % known != 0 || (open == 0 && known != wanted)) {
    return std::nullopt;
  }
  std::ranges::replace(sizes, -1, wanted / known);
  return sizes;
}

// The layout for which these sizes are a grey image of this plane; either if there are only 2.
std::optional<ImageLayout> grey_layout(const Sizes& sizes, const math::Shape& plane) {
  const math::Shape grey{.height = plane.height, .width = plane.width};
  // The last one first: a plane whose size is 1 fits both, and disttf keeps channels last.
  for (const ImageLayout layout : {kLast, kFirst}) {
    if (shape_as(sizes, layout) == grey) {
      return layout;
    }
  }
  return std::nullopt;
}

}  // namespace

void ValueShape::open(Sizes sizes) {
  is_image_ = true;
  input_is_image_ = true;
  if (sizes.size() == 2) {  // both layouts of a grey image are the same
    shape_ = shape_as(sizes, kLast);
  }
  open_sizes_ = std::move(sizes);
}

void ValueShape::begin(Sizes sizes) {
  std::size_t numbers = 1;
  for (const std::int64_t size : sizes) {
    numbers *= static_cast<std::size_t>(size);
  }
  if (wishes_.shape && wishes_.shape->size() != numbers) {
    throw std::invalid_argument(where_ + ": its input has " + std::to_string(numbers) +
                                " numbers, and --input " + std::to_string(wishes_.shape->size()));
  }
  if (sizes.size() > 1) {
    open(std::move(sizes));
    return;
  }
  // A row that --input declares an image has its numbers channels last, as disttf does.
  shape_ = wishes_.shape.value_or(math::Shape{.channels = numbers});
  input_is_image_ = shape_.height != 1 || shape_.width != 1;
}

ImageLayout ValueShape::known_layout(const ChainNode& node,
                                     std::optional<ImageLayout> evidence) const {
  const Sizes& sizes = open_sizes_;
  // The graph is right about itself, so a flag that contradicts it is an error.
  if (wishes_.layout && evidence && sizes.size() == 3 && *wishes_.layout != *evidence) {
    throw std::invalid_argument(
        std::string("--input_layout: ") + (*wishes_.layout == kFirst ? "nchw" : "nhwc") +
        ", but the node that reads the input (" + node.type() + ") has the channels " +
        (*evidence == kFirst ? "first; use nchw" : "last; use nhwc"));
  }
  // In descending order of certainty: the graph, the flag, a known shape, usual channel counts.
  if (evidence) {
    return *evidence;
  }
  if (wishes_.layout) {
    return *wishes_.layout;
  }
  if (sizes.size() == 2 || shape_as(sizes, kFirst) == shape_as(sizes, kLast)) {
    return kLast;  // both layouts are the same
  }
  for (const std::optional<math::Shape>& shape : {wishes_.shape, wishes_.exported_from}) {
    if (const auto layout = shape ? layout_with(sizes, *shape) : std::nullopt) {
      return *layout;
    }
  }
  if (const auto layout = usual_layout(sizes)) {
    return *layout;
  }
  throw std::invalid_argument(
      "--input_layout: missing; " + where_ + ": its input is " + sizes_text(sizes) +
      ", and the file does not show which dimension is the channels; must be nchw for " +
      math::to_string(shape_as(sizes, kFirst)) + " (channels first), nhwc for " +
      math::to_string(shape_as(sizes, kLast)) + " (channels last)");
}

std::optional<std::string> ValueShape::decide(const ChainNode& node,
                                              std::optional<ImageLayout> evidence) {
  if (is_decided()) {
    return std::nullopt;
  }
  const ImageLayout layout = known_layout(node, evidence);
  // Empty sizes mark the order as decided, for is_decided().
  const Sizes sizes = std::exchange(open_sizes_, {});
  shape_ = shape_as(sizes, layout);
  is_turned_ = layout == kLast;
  if (wishes_.shape && *wishes_.shape != shape_) {
    throw std::invalid_argument(where_ + ": its input is " + math::to_string(shape_) +
                                ", and --input is " + math::to_string(*wishes_.shape));
  }
  if (sizes.size() == 3 && usual_layout(sizes).value_or(layout) != layout) {
    return where_ + ": its input " + sizes_text(sizes) + " is read as " + math::to_string(shape_) +
           ", because " +
           (evidence ? "the node that reads it (" + node.type() + ") has its channels there"
                     : std::string("a flag says so"));
  }
  return std::nullopt;
}

void ValueShape::flatten() noexcept {
  // Only then does the row have another order than disttf's.
  if (shape_.channels > 1 && shape_.height * shape_.width > 1 && !is_turned_) {
    flattened_ = shape_;
  }
  is_image_ = false;
  is_turned_ = false;
}

void ValueShape::transpose(const ChainNode& node) {
  const Sizes order = node.wholes("perm", {});
  const bool to_first = order == Sizes{0, 3, 1, 2};
  const bool to_last = order == Sizes{0, 2, 3, 1};
  if (is_image_ && open_sizes_.size() != 2 && (to_first || to_last)) {
    static_cast<void>(decide(node, to_first ? kLast : kFirst));
    // The transposition changes only the order in the file: disttf's own stays channels last.
    if (is_turned_ == to_first) {
      is_turned_ = to_last;
      return;
    }
  }
  node.require(false, "perm",
               "0, 3, 1, 2 of an image whose channels are last, and 0, 2, 3, 1 of one whose "
               "channels are first");
}

void ValueShape::reshape_to_image(const ChainNode& node, const Sizes& with_n, bool is_input) {
  std::size_t numbers = shape_.size();
  // shape() of an undecided image is not set yet.
  if (!is_decided()) {
    numbers = 1;
    for (const std::int64_t size : open_sizes_) numbers *= static_cast<std::size_t>(size);
  }
  const auto sizes = resolved(with_n, numbers);
  if (sizes && !is_image_ && is_input && !flattened_) {
    open(*sizes);  // the row is an image from here on
    return;
  }
  if (sizes && is_image_ && sizes == open_sizes_) {
    return;
  }
  // A grey image has the same order with its channel first, last, or absent.
  const bool is_grey =
      is_image_ && (is_decided() ? shape_.channels == 1
                                 : open_sizes_.size() == 2 || open_sizes_.front() == 1 ||
                                       open_sizes_.back() == 1);
  if (sizes && is_grey) {
    for (const ImageLayout from : {kLast, kFirst}) {
      const math::Shape plane = is_decided() ? shape_ : shape_as(open_sizes_, from);
      const auto to = grey_layout(*sizes, plane);
      if (plane.channels != 1 || !to) {
        continue;
      }
      static_cast<void>(decide(node, from));
      is_turned_ = *to == kLast;
      if (sizes->size() == 2) {
        open_sizes_.clear();
      }
      return;
    }
  }
  node.require(false, "a shape",
               "[N, all numbers of an example], or, of a grey image or of the input, that of an "
               "image");
}

}  // namespace disttf::roles
