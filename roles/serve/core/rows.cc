#include "roles/serve/core/rows.h"

#include <algorithm>
#include <initializer_list>

#include "data/own/row_source.h"
#include "model/predict/example_reader.h"
#include "model/predict/input_range.h"
#include "net/wire/base64.h"
#include "roles/serve/core/api_route.h"

namespace disttf::roles {
namespace {

// For messages: the shapes that is_example() accepts.
std::string example_shapes(const TrainedModel& model) {
  const math::Shape& shape = model.config.model.input;
  std::string text = "[rows, " + std::to_string(shape.size()) + "]";
  if (!model.is_of_numbers()) {
    const std::string image =
        "[rows, " + std::to_string(shape.height) + ", " + std::to_string(shape.width);
    text += " or " + image + ", " + std::to_string(shape.channels) + "]";
    if (shape.channels == 1) {
      text += " or " + image + "]";
    }
  }
  return text;
}

}  // namespace

bool Dims::hold(std::size_t values) const noexcept {
  std::size_t product = 1;
  // Division instead of a product that could overflow: a client chooses the sizes.
  for (const std::size_t size : all()) {
    if (size == 0 || product > values / size) {
      return false;  // also if the product would overflow
    }
    product *= size;
  }
  return product == values;
}

std::string Dims::text() const {
  std::string text = "[";
  for (const std::size_t size : all()) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  }
  return text + "]";
}

void Rows::clear(const TrainedModel& model) {
  constexpr std::size_t kKeptValues = std::size_t{64} << 10U;
  // Requests reuse this memory, but one huge request must not occupy it for ever.
  // Assigning an empty vector releases the memory; clear() keeps it.
  if (pixels_.capacity() > kKeptValues) {
    pixels_ = {};
  }
  if (numbers_.capacity() > kKeptValues) {
    numbers_ = {};
  }
  pixels_.clear();
  numbers_.clear();
  is_bytes_ = !model.is_of_numbers();
  has_files_ = false;
}

void Rows::scale() {
  if (is_bytes_) {
    become_numbers();
  }
  scale_to_bytes(numbers_);
}

void Rows::become_numbers() {
  // Exact: a float32 represents every byte.
  numbers_.assign(pixels_.begin(), pixels_.end());
  pixels_.clear();
  is_bytes_ = false;
}

void Rows::add(std::span<const std::uint8_t> pixels) {
  // The pixels of a file are bytes even with --input_range unit.
  has_files_ = true;
  if (is_bytes_) {
    pixels_.insert(pixels_.end(), pixels.begin(), pixels.end());
  } else {
    numbers_.insert(numbers_.end(), pixels.begin(), pixels.end());
  }
}

void Rows::add(std::span<const float> numbers) {
  for (const float each : numbers) {
    add(each);
  }
}

bool is_example(std::span<const std::size_t> sizes, const TrainedModel& model) {
  const math::Shape& shape = model.config.model.input;
  const auto is = [sizes](std::initializer_list<std::size_t> wanted) {
    return std::ranges::equal(sizes, wanted);
  };
  return is({shape.size()}) ||
         (!model.is_of_numbers() && (is({shape.height, shape.width, shape.channels}) ||
                                     (shape.channels == 1 && is({shape.height, shape.width}))));
}

std::size_t rows_of(const Dims& dims, const TrainedModel& model, std::string_view what) {
  // The first dimension is the number of rows; the others are the example's.
  if (dims.rank == 0 || !is_example(dims.all().subspan(1), model) || dims.sizes[0] == 0) {
    throw BadRequest(std::string(what) + ": the shape is " + dims.text() + "; the model takes " +
                     example_shapes(model) + ", and one row at least");
  }
  return dims.sizes[0];
}

std::size_t add_file(std::span<const std::uint8_t> file, std::string_view what,
                     const TrainedModel& model, Rows& rows) {
  // No limit here bounds the unpacked size.
  if (file.size() >= 2 && file[0] == 0x1F && file[1] == 0x8B) {
    throw BadRequest(std::string(what) +
                     ": it is gzipped; send the file itself, or the whole "
                     "body with Content-Encoding: gzip");
  }
  try {
    const Examples examples = read_examples(file, std::string(what), model);
    const std::size_t count = examples.rows(model.config.model.input.size());
    if (count == 0) {  // an array of shape (0, 784), say: an answer of no rows has no columns
      throw BadRequest(std::string(what) + ": it has no rows; at least 1 is needed");
    }
    if (examples.pixels.empty()) {
      rows.add(std::span<const float>(examples.numbers));
    } else {
      rows.add(std::span<const std::uint8_t>(examples.pixels));
    }
    return count;
  } catch (const data::UnusableData& error) {
    throw BadRequest(error.what());
  }
}

std::size_t add_base64(std::string_view text, std::string_view what, const TrainedModel& model,
                       Rows& rows) {
  std::vector<std::uint8_t> bytes;
  if (!net::decode_base64(text, bytes)) {
    throw BadRequest(std::string(what) + ": not valid base64");
  }
  return add_file(bytes, what, model, rows);
}

std::string_view output_name(const TrainedModel& model) noexcept {
  return model.tells_numbers() ? "value" : "probabilities";
}

}  // namespace disttf::roles
