#include "roles/chief/shell/record_pictures.h"

#include <algorithm>
#include <optional>

#include "data/tensorboard/png.h"
#include "roles/chief/shell/summary_pictures.h"
#include "run/monitor/core/record.h"

namespace disttf::roles {
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
