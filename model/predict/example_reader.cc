#include "model/predict/example_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <system_error>
#include <utility>

#include "data/error.h"
#include "data/gzip.h"
#include "data/idx.h"
#include "data/own/class_name.h"
#include "data/own/image_file.h"
#include "data/own/npy.h"
#include "data/own/row_source.h"
#include "model/predict/table_examples.h"

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
// With a length: the text contains zeros. 8 is the type of unsigned bytes.
constexpr std::string_view kIdx{"\0\0\x08", 3};

// Limit of the extracted size, by the file's type: a few bytes of gzip may inflate to any size.
std::uint64_t most_extracted(Bytes head) {
  constexpr std::uint64_t kMostImage = std::uint64_t{256} << 20U;
  if (begins(head, kIdx)) {
    return std::min<std::uint64_t>(data::idx_file_bytes(head), kMostExampleBytes);
  }
  return begins(head, kPng) || begins(head, kJpeg) ? kMostImage : kMostExampleBytes;
}

std::vector<std::uint8_t> extract(Bytes file, const std::string& name) {
  std::vector<std::uint8_t> bytes;
  const std::error_code error =
      data::gunzip_pieces([&file] { return std::exchange(file, {}); },
                          [&bytes](Bytes piece) {
                            bytes.insert(bytes.end(), piece.begin(), piece.end());
                            // After each piece: the limit follows from the header once that is
                            // extracted.
                            return bytes.size() > most_extracted(bytes)
                                       ? make_error_code(data::DataError::kGzipTooLarge)
                                       : std::error_code{};
                          });
  // Leaves a malformed header to its parser, whose message is better.
  const bool has_bad_header = begins(bytes, kIdx) && data::idx_file_bytes(bytes) == 0;
  if (error && !has_bad_header) {
    throw UnusableData(name + ": " + error.message());
  }
  return bytes;
}

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
  // A grey file also fits a model of colours; a coloured one does not fit a grey model.
  // decode_image() repeats the grey channel.
  const bool fits_channels = shape.channels == (size.is_grey ? shape.channels : 3);
  if (size.height != shape.height || size.width != shape.width || !fits_channels) {
    throw UnusableData(name + ": it is " + std::to_string(size.height) + "x" +
                       std::to_string(size.width) + (size.is_grey ? ", grey" : ", colour") +
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

// Whether the sizes of one example are the model's: its number of values, or the sizes of an image;
// the channel of a grey image is first, last or absent.
bool fits(std::span<const std::uint64_t> sizes, const TrainedModel& model) {
  const math::Shape& shape = model.config.model.input;
  const auto is = [sizes](std::initializer_list<std::uint64_t> wanted) {
    return std::ranges::equal(sizes, wanted);
  };
  return is({shape.size()}) || (shape.size() == 1 && sizes.empty()) ||
         (!model.is_of_numbers() &&
          (is({shape.height, shape.width, shape.channels}) ||
           (shape.channels == 1 &&
            (is({shape.height, shape.width}) || is({1, shape.height, shape.width})))));
}

Examples read_npy(Bytes file, const std::string& name, const TrainedModel& model) {
  const data::NpyPrefix prefix =
      // In two steps: the prefix has the length of the header.
      data::parse_npy_prefix(file.first(std::min(file.size(), data::kNpyPrefixBytes)), name);
  if (file.size() < prefix.dict_begin + prefix.dict_bytes) {
    throw UnusableData(name + ": truncated in its header");
  }
  const Bytes dict = file.subspan(prefix.dict_begin, prefix.dict_bytes);
  const data::NpyHeader header = data::parse_npy_dict(std::string(dict.begin(), dict.end()), name);
  const std::size_t inputs = model.config.model.input.size();
  std::uint64_t count = 1;
  for (const std::uint64_t size : header.shape) {
    count *= size;  // cannot overflow: the byte count of all elements fits 63 bits
  }
  const std::span<const std::uint64_t> sizes(header.shape);
  // Rows win where both readings fit.
  const bool is_rows = !sizes.empty() && fits(sizes.subspan(1), model);
  const bool is_single = !is_rows && fits(sizes, model);
  if (!is_rows && !is_single) {
    throw UnusableData(name + ": it is " + header.text() + "; the model takes rows of " +
                       std::to_string(inputs) + " (" + text_of(model.config.model.input) + ")");
  }
  const Bytes elements = file.subspan(prefix.dict_begin + prefix.dict_bytes);
  if (elements.size() != count * header.element_bytes) {
    throw UnusableData(name + ": it has " + std::to_string(elements.size()) +
                       " bytes of elements; its header requires " +
                       std::to_string(count * header.element_bytes));
  }
  Examples out;
  out.is_single = is_single;
  // Bytes stay bytes, so that the range of pixels is certain and the fast path applies.
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
  const std::string wanted = data::class_name_of(name);
  const std::size_t classes = model.config.model.classes;
  for (std::size_t i = 0; i < classes; ++i) {
    // Exact names first: two names may become equal when they are normalized.
    if (model.class_name(i) == wanted) {
      return i;
    }
  }
  // Names of a known data set or of an earlier release may be written differently.
  for (std::size_t i = 0; i < classes; ++i) {
    if (data::class_name_of(model.class_name(i)) == wanted) {
      return i;
    }
  }
  return std::nullopt;
}

Examples read_examples(Bytes file, const std::string& name, const TrainedModel& model) {
  if (begins(file, kGzip)) {
    const std::vector<std::uint8_t> extracted = extract(file, name);
    // Bounds the work on a hostile file.
    if (begins(extracted, kGzip)) {
      throw UnusableData(name + ": gzipped twice");
    }
    return read_examples(extracted, name, model);
  }
  // By content, not by name: standard input and requests have no name.
  if (begins(file, kPng) || begins(file, kJpeg)) {
    return read_image(file, name, model);
  }
  if (begins(file, kNpy)) {
    return read_npy(file, name, model);
  }
  if (begins(file, kZip)) {
    throw UnusableData(name +
                       ": a zip archive contains several arrays; must be the .npy file of the "
                       "examples (or use --data)");
  }
  if (begins(file, kIdx)) {
    return read_idx(file, name, model);
  }
  // Last: a table has no magic bytes.
  return read_table(std::string_view(reinterpret_cast<const char*>(file.data()), file.size()), name,
                    model);
}

std::vector<std::size_t> read_labels(Bytes file, const std::string& name,
                                     const TrainedModel& model) {
  std::vector<std::uint8_t> extracted;
  if (begins(file, kGzip)) {
    extracted = extract(file, name);
    file = extracted;
  }
  // A numeric class name is compared with the label; otherwise the label is an index.
  constexpr std::size_t kBytes = 256;
  const std::vector<std::string>& names = model.config.examples.classes;
  const bool has_numbers = !names.empty() && std::ranges::all_of(names, &data::is_number_name);
  const std::size_t classes = has_numbers ? kBytes : model.config.model.classes;
  Bytes labels;
  std::string detail;
  if (const std::error_code error = data::parse_labels(file, classes, labels, detail)) {
    throw UnusableData(name + ": " + error.message() + ": " + detail);
  }
  std::vector<std::size_t> places(labels.begin(), labels.end());
  for (std::size_t row = 0; has_numbers && row < places.size(); ++row) {
    const auto place = class_called(model, std::to_string(places[row]));
    if (!place) {
      throw UnusableData(name + ": label " + std::to_string(places[row]) + " in row " +
                         std::to_string(row) + " is not a class of the model");
    }
    places[row] = *place;
  }
  return places;
}

}  // namespace disttf::roles
