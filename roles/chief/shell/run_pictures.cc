#include "roles/chief/shell/run_pictures.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "data/tensorboard/events.h"
#include "run/monitor/core/record.h"

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

namespace {

std::string class_text(const data::Dataset& dataset, std::size_t index) {
  if (index >= dataset.classes) {
    return "none";
  }
  return index < dataset.class_names.size() ? std::string(dataset.class_names[index])
                                            : std::to_string(index);
}

// The record of an oversized picture is empty.
void put(PictureRecord record, const std::string& png, double time,
         std::vector<std::string>& lines) {
  record.index = lines.size();
  record.png = std::as_bytes(std::span(png));
  std::string line = record.to_line(time);
  if (!line.empty()) {
    lines.push_back(std::move(line));
  }
}

// Returns one of the filters that lie side by side in a picture, separated by lines of one pixel.
std::vector<std::uint8_t> cut(const Picture& all, std::size_t top, std::size_t left,
                              std::size_t height, std::size_t width) {
  std::vector<std::uint8_t> pixels;
  for (std::size_t y = top; y < top + height; ++y) {
    const auto begin =
        all.pixels.begin() + static_cast<std::ptrdiff_t>((y * all.width + left) * all.channels);
    pixels.insert(pixels.end(), begin, begin + static_cast<std::ptrdiff_t>(width * all.channels));
  }
  return pixels;
}

}  // namespace

std::vector<std::string> wrong_picture_lines(const data::Dataset& dataset,
                                             const math::Evaluation& test, std::uint64_t step,
                                             double time) {
  std::vector<std::string> lines;
  const data::ImageShape& shape = dataset.shape;
  // PNG has grey and RGB pictures; other numbers of channels cannot be shown.
  if (dataset.test.images.empty() || (shape.channels != 1 && shape.channels != 3)) {
    return lines;
  }
  for (std::size_t row = 0; row < test.answers.size() && lines.size() < kMostWrongPictures; ++row) {
    const std::size_t label = dataset.test.labels[row];
    if (test.answers[row] == label) {
      continue;
    }
    const std::string png =
        data::encode_png(dataset.test.images.subspan(row * shape.size(), shape.size()),
                         shape.height, shape.width, shape.channels);
    put({.step = step,
         .set = "wrong",
         .label = class_text(dataset, label),
         .answer = class_text(dataset, test.answers[row])},
        png, time, lines);
  }
  return lines;
}

std::vector<std::string> filter_picture_lines(const math::ModelSpec& spec,
                                              const math::ParameterLayout& layout,
                                              std::span<const float> parameters, std::uint64_t step,
                                              double time) {
  std::vector<std::string> lines;
  const std::optional<Picture> all = picture_of_weights(spec, layout, parameters);
  if (!all) {
    return lines;
  }
  // Each filter but the last is followed by a separating line.
  const std::size_t high = (all->height + 1) / all->rows;
  const std::size_t wide = (all->width + 1) / all->columns;
  for (std::size_t unit = 0; unit < all->count; ++unit) {
    const std::string png = data::encode_png(
        cut(*all, unit / all->columns * high, unit % all->columns * wide, high - 1, wide - 1),
        high - 1, wide - 1, all->channels);
    put({.step = step, .set = "filters", .label = {}, .answer = {}}, png, time, lines);
  }
  return lines;
}

}  // namespace disttf::roles
