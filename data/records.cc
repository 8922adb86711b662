#include "data/records.h"

#include <cassert>

#include "data/error.h"

namespace disttf::data {
namespace {

void put_channels_last(std::span<const std::uint8_t> planes, const ImageShape& shape,
                       std::span<std::uint8_t> pixels) {
  const std::size_t plane = shape.height * shape.width;
  for (std::size_t channel = 0; channel < shape.channels; ++channel) {
    for (std::size_t i = 0; i < plane; ++i) {
      pixels[i * shape.channels + channel] = planes[channel * plane + i];
    }
  }
}

}  // namespace

std::error_code parse_records(std::span<const std::uint8_t> bytes, const ImageShape& shape,
                              std::size_t classes, std::vector<std::uint8_t>& images,
                              std::vector<std::uint8_t>& labels, std::string& detail) {
  assert(shape.size() > 0 && classes <= 256);
  const std::size_t record = 1 + shape.size();
  const std::size_t rows = bytes.size() / record;
  if (bytes.size() % record != 0) {
    detail = sentence("records of " + std::to_string(record) + " bytes",
                      std::to_string(bytes.size() % record) + " bytes after the last one");
    return DataError::kBadRecords;
  }
  for (std::size_t row = 0; row < rows; ++row) {
    // All labels are checked before anything is appended, so a bad file changes neither vector.
    if (bytes[row * record] < classes) continue;
    detail = sentence("labels 0 to " + std::to_string(classes - 1),
                      std::to_string(bytes[row * record]) + " in row " + std::to_string(row));
    return DataError::kBadLabel;
  }
  const std::size_t before = images.size();
  images.resize(before + rows * shape.size());
  labels.reserve(labels.size() + rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto found = bytes.subspan(row * record, record);
    labels.push_back(found[0]);
    // The file has one plane for each channel; layers expect the channels of a pixel side by side.
    put_channels_last(found.subspan(1), shape,
                      std::span(images).subspan(before + row * shape.size(), shape.size()));
  }
  return {};
}

}  // namespace disttf::data
