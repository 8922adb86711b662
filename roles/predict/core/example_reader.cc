#include "roles/predict/core/example_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "data/gzip.h"
#include "data/idx.h"
#include "data/own/image_file.h"
#include "data/own/npy.h"
#include "data/own/row_source.h"
#include "roles/predict/core/table_examples.h"

namespace disttf::roles {
namespace {

using data::UnusableData;
using Bytes = std::span<const std::uint8_t>;

bool begins(Bytes file, std::string_view with) {
  return file.size() >= with.size() &&
         std::equal(with.begin(), with.end(), file.begin(),
                    [](char c, std::uint8_t byte) { return static_cast<std::uint8_t>(c) == byte; });
}

constexpr std::string_view kGzip = "\x1f\x8b";
constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n";
constexpr std::string_view kJpeg = "\xff\xd8\xff";
constexpr std::string_view kNpy = "\x93NUMPY";
constexpr std::string_view kZip = "PK\x03\x04";
constexpr std::string_view kIdx{"\0\0\x08", 3};

std::string text_of(const math::Shape& shape) {
  return std::to_string(shape.height) + "x" + std::to_string(shape.width) +
         (shape.channels == 1 ? "" : " in " + std::to_string(shape.channels) + " channels");
}

void require_images(const TrainedModel& model, const std::string& name, const char* what) {
  if (model.is_of_numbers()) {
    throw UnusableData(name + ": " + what + ", but the model takes rows of " +
                       std::to_string(model.config.model.input.size()) + " numbers");
  }
}

Examples read_image(Bytes file, const std::string& name, const TrainedModel& model) {
  require_images(model, name, "it is an image");
  const math::Shape& shape = model.config.model.input;
  const data::ImageSize size = data::image_size(file, name);
  const bool fits_channels = shape.channels == (size.is_grey ? shape.channels : 3);
  if (size.height != shape.height || size.width != shape.width || !fits_channels) {
    throw UnusableData(name + ": it is " + std::to_string(size.height) + "x" +
                       std::to_string(size.width) + (size.is_grey ? ", grey" : ", in colours") +
                       "; the model takes " + text_of(shape) +
                       (shape.channels == 1 ? ", grey" : ""));
  }
  Examples out;
  out.is_single = true;
  out.pixels.resize(shape.size());
  data::decode_image(file, name, shape.channels, out.pixels);
  return out;
}

Examples read_idx(Bytes file, const std::string& name, const TrainedModel& model) {
  require_images(model, name, "it holds images");
  const math::Shape& shape = model.config.model.input;
  Bytes images;
  std::string detail;
  const data::ImageShape wanted{
      .height = shape.height, .width = shape.width, .channels = shape.channels};
  if (const std::error_code error = data::parse_images(file, wanted, images, detail)) {
    throw UnusableData(name + ": " + error.message() + ": " + detail);
  }
  Examples out;
  out.pixels.assign(images.begin(), images.end());
  return out;
}

Examples read_npy(Bytes file, const std::string& name, const TrainedModel& model) {
  const data::NpyPrefix prefix =
      data::parse_npy_prefix(file.first(std::min(file.size(), data::kNpyPrefixBytes)), name);
  if (file.size() < prefix.dict_begin + prefix.dict_bytes) {
    throw UnusableData(name + ": it ends in its header");
  }
  const Bytes dict = file.subspan(prefix.dict_begin, prefix.dict_bytes);
  const data::NpyHeader header = data::parse_npy_dict(std::string(dict.begin(), dict.end()), name);
  const std::size_t inputs = model.config.model.input.size();
  std::uint64_t count = 1;
  for (const std::uint64_t size : header.shape) {
    count *= size;  // all elements' bytes fit 63 bits
  }
  const bool is_single = count == inputs && header.row_elements() != inputs;
  if (!is_single && (header.shape.empty() || header.row_elements() != inputs)) {
    throw UnusableData(name + ": it is " + header.text() + "; the model takes rows of " +
                       std::to_string(inputs) + " (" + text_of(model.config.model.input) + ")");
  }
  const Bytes elements = file.subspan(prefix.dict_begin + prefix.dict_bytes);
  if (elements.size() != count * header.element_bytes) {
    throw UnusableData(name + ": it has " + std::to_string(elements.size()) +
                       " bytes of elements where its header says " +
                       std::to_string(count * header.element_bytes));
  }
  Examples out;
  out.is_single = is_single;
  if (header.is_bytes() && !model.is_of_numbers()) {
    out.pixels.assign(elements.begin(), elements.end());
    return out;
  }
  out.numbers.resize(count);
  const std::size_t bad = data::npy_numbers(header, elements, out.numbers);
  if (bad != out.numbers.size()) {
    throw UnusableData(name + ": row " + std::to_string(bad / inputs + 1) + ", value " +
                       std::to_string(bad % inputs + 1) + " is not a finite number");
  }
  return out;
}

}  // namespace

std::optional<std::size_t> class_called(const TrainedModel& model, std::string_view name) {
  for (std::size_t i = 0; i < model.config.model.classes; ++i) {
    if (model.class_name(i) == name) {
      return i;
    }
  }
  return std::nullopt;
}

Examples read_examples(Bytes file, const std::string& name, const TrainedModel& model) {
  if (begins(file, kGzip)) {
    std::vector<std::uint8_t> extracted;
    if (const std::error_code error = data::gunzip(file, kMostExampleBytes, extracted)) {
      throw UnusableData(name + ": " + error.message());
    }
    if (begins(extracted, kGzip)) {
      throw UnusableData(name + ": gzipped twice");
    }
    return read_examples(extracted, name, model);
  }
  if (begins(file, kPng) || begins(file, kJpeg)) {
    return read_image(file, name, model);
  }
  if (begins(file, kNpy)) {
    return read_npy(file, name, model);
  }
  if (begins(file, kZip)) {
    throw UnusableData(name +
                       ": a zip archive holds several arrays; give the .npy file of the examples, "
                       "or --data, which knows which is which");
  }
  if (begins(file, kIdx)) {
    return read_idx(file, name, model);
  }
  return read_table(std::string_view(reinterpret_cast<const char*>(file.data()), file.size()), name,
                    model);
}

std::vector<std::size_t> read_labels(Bytes file, const std::string& name,
                                     const TrainedModel& model) {
  std::vector<std::uint8_t> extracted;
  if (begins(file, kGzip)) {
    if (const std::error_code error = data::gunzip(file, kMostExampleBytes, extracted)) {
      throw UnusableData(name + ": " + error.message());
    }
    file = extracted;
  }
  Bytes labels;
  std::string detail;
  if (const std::error_code error =
          data::parse_labels(file, model.config.model.classes, labels, detail)) {
    throw UnusableData(name + ": " + error.message() + ": " + detail);
  }
  return {labels.begin(), labels.end()};
}

}  // namespace disttf::roles
