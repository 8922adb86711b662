#include "roles/chief/shell/summary_pictures.h"

#include <algorithm>
#include <cmath>

namespace disttf::roles {
namespace {

constexpr std::size_t kLeastSide = 28;  // of a filter, in pixels of the picture
// In the picture; of larger filters fewer are drawn.
constexpr std::size_t kMostNumbers = std::size_t{1} << 22U;
constexpr float kGrey = 127.5F;

// The first variable of the first layer that has variables, [height, width, channels, units].
struct Filters {
  const math::Variable* variable = nullptr;
  math::Shape shape;  // of one
  std::size_t count = 0;
};

// A dense layer's variable is [inputs, units], a convolution's [side, side, channels, units]: in
// both, a unit's weights are in the order of the pixels.
std::optional<Filters> first_filters(const math::ModelSpec& spec,
                                     const math::ParameterLayout& layout) {
  for (const math::PlacedLayer& placed : math::make_layers(spec)) {
    if (placed.layer->variables().empty()) {
      continue;
    }
    const math::Variable& variable = layout.variables().front();
    constexpr std::size_t kOfConvolution = 4;
    math::Shape shape =
        placed.layer->input().size() == spec.input.size() ? spec.input : placed.layer->input();
    // A convolution's filter has its own size, which is not that of the input.
    if (variable.shape.size() == kOfConvolution) {
      shape = {
          .height = variable.shape[0], .width = variable.shape[1], .channels = variable.shape[2]};
    }
    const std::size_t count = variable.shape.back();
    if (shape.size() * count != variable.size) {
      return std::nullopt;  // such as batch norm's
    }
    return Filters{.variable = &variable, .shape = shape, .count = count};
  }
  return std::nullopt;
}

// Draws one filter at (top, left), each weight as scale x scale pixels.
void draw(const Filters& filters, std::span<const float> weights, std::size_t unit,
          std::size_t scale, std::size_t top, std::size_t left, Picture& picture) {
  const math::Shape& shape = filters.shape;
  const auto weight = [&](std::size_t y, std::size_t x, std::size_t channel) {
    return weights[((y * shape.width + x) * shape.channels + channel) * filters.count + unit];
  };
  float greatest = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    greatest = std::max(greatest, std::abs(weights[i * filters.count + unit]));  // no NaN
  }
  for (std::size_t y = 0; y < shape.height * scale; ++y) {
    for (std::size_t x = 0; x < shape.width * scale; ++x) {
      for (std::size_t channel = 0; channel < shape.channels; ++channel) {
        const float value = weight(y / scale, x / scale, channel);
        const float share = value / greatest;  // NaN if both are 0 or infinite
        const float part = std::isfinite(share) ? share : 0;
        const std::size_t at = ((top + y) * picture.width + left + x) * picture.channels + channel;
        picture.pixels[at] = static_cast<std::uint8_t>(std::lround(kGrey + kGrey * part));
      }
    }
  }
}

}  // namespace

std::optional<Picture> picture_of_weights(const math::ModelSpec& spec,
                                          const math::ParameterLayout& layout,
                                          std::span<const float> parameters) {
  // A user's program reads its examples in a form that it alone has.
  const bool has_images = !spec.numbers && !spec.is_program();
  const auto filters = has_images ? first_filters(spec, layout) : std::nullopt;
  if (!filters || (filters->shape.channels != 1 && filters->shape.channels != 3)) {
    return std::nullopt;
  }
  const math::Shape& shape = filters->shape;
  const std::size_t scale =
      std::max<std::size_t>(1, kLeastSide / std::max(shape.height, shape.width));
  // At least one filter is drawn, however large it is.
  const std::size_t count =
      std::min({filters->count, kMostFilters, 1 + kMostNumbers / (shape.size() * scale * scale)});
  // The grid is as square as possible, with one pixel between two filters.
  const auto columns = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const std::size_t rows = (count + columns - 1) / columns;
  const std::size_t high = shape.height * scale + 1;
  const std::size_t wide = shape.width * scale + 1;
  Picture picture{.name = filters->variable->name,
                  .height = rows * high - 1,
                  .width = columns * wide - 1,
                  .channels = shape.channels,
                  .rows = rows,
                  .columns = columns,
                  .count = count,
                  .pixels = {}};
  picture.pixels.resize(picture.height * picture.width * picture.channels);
  const std::span<const float> weights =
      parameters.subspan(filters->variable->offset, filters->variable->size);
  for (std::size_t unit = 0; unit < count; ++unit) {
    draw(*filters, weights, unit, scale, unit / columns * high, unit % columns * wide, picture);
  }
  return picture;
}

}  // namespace disttf::roles
