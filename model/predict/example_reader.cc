#include "model/predict/example_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "data/error.h"
#include "data/gzip.h"
#include "data/idx.h"
#include "data/own/class_name.h"
#include "data/own/csv_cells.h"
#include "data/own/image_file.h"
#include "data/own/npy.h"
#include "data/own/row_source.h"
#include "data/own/shown_text.h"
#include "data/own/table_head.h"
#include "data/own/text_encoding.h"

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

namespace {

// Uses of columns that are not inputs.
constexpr std::size_t kLeftOut = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kLabel = kLeftOut - 1;

class TableReader {
 public:
  TableReader(std::string_view text, const std::string& name, const TrainedModel& model)
      : text_(text), name_(name), model_(model), inputs_(model.config.model.input.size()) {}

  Examples read() {
    // First: the message about a wrong encoding is better than one about cells.
    check_encoding();
    find_columns();
    data::CsvCells cells(text_, delimiter_);
    // fail() counts line ends from here.
    counted_ = text_.data();
    while (!cells.at_end()) {
      if (cells.line_ended() && cells.skip_empty_line()) {
        continue;
      }
      // skip_empty_line() may have skipped the last line.
      if (cells.at_end()) break;
      read_row(cells);
    }
    if (out_.numbers.empty()) {
      throw UnusableData(name_ + ": it has no rows");
    }
    return std::move(out_);
  }

 private:
  void check_encoding() {
    text_ = data::without_byte_order_mark(text_);
    const std::string refusal = data::refused_encoding(text_.substr(0, data::kEncodingHeadBytes));
    if (refusal.starts_with(data::kNoText)) {
      throw UnusableData(name_ + ": neither a PNG, JPEG, IDX or NPY file nor a table of text");
    }
    if (!refusal.empty()) {
      throw UnusableData(name_ + ": " + refusal);
    }
  }

  // Reads the first line as training does: the separator, and what each column is.
  void find_columns() {
    const ExampleFacts& facts = model_.config.examples;
    const bool knows_names = facts.columns.size() == inputs_;  // else unknown, or of another model
    const data::TableHead head = data::read_table_head(
        text_, 1,
        {.known_names = knows_names ? facts.columns : std::vector<std::string>(),
         .may_guess = false},
        name_);
    delimiter_ = head.delimiter;
    line_ = head.rows_line;
    text_ = head.rows;
    if (head.has_names) {
      if (!knows_names) {
        throw UnusableData(name_ + ": line " + std::to_string(head.line) +
                           " contains names, but the model has no column names; must be rows of " +
                           std::to_string(inputs_) + " numbers");
      }
      take_names(head.names);
    } else if (head.names.size() == inputs_) {
      for (std::size_t i = 0; i < inputs_; ++i) uses_.push_back(i);
    } else if (knows_names && data::are_numbered(facts.columns, head.names.size()) &&
               data::are_numbered({facts.label}, head.names.size())) {
      take_names(head.names);  // the training table had no names either
    } else {
      throw UnusableData(name_ + ": line " + std::to_string(head.line) + " has " +
                         std::to_string(head.names.size()) + " cells; the model takes " +
                         std::to_string(inputs_) + " numbers, or a first line of column names");
    }
  }

  void take_names(const std::vector<std::string>& names) {
    const ExampleFacts& facts = model_.config.examples;
    std::map<std::string_view, std::size_t> inputs;
    for (std::size_t i = 0; i < facts.columns.size(); ++i) inputs.emplace(facts.columns[i], i);
    for (const std::string& name : names) {
      const auto found = inputs.find(name);
      if (found != inputs.end()) {
        // Removed below, so that the inputs that remain are the missing ones, and a second column
        // of this name is ignored.
        uses_.push_back(found->second);
        inputs.erase(found);
      } else {
        // Unknown columns are ignored: the training table may be a part of this one.
        uses_.push_back(name == facts.label && !facts.label.empty() ? kLabel : kLeftOut);
      }
    }
    if (!inputs.empty()) {
      const auto first =
          // The first one in the order of training, so the message does not depend on the map's
          // order.
          std::ranges::min_element(inputs, {}, [](const auto& each) { return each.second; });
      throw UnusableData(name_ + ": the column \"" + data::printable(first->first) +
                         "\" is missing, which the model was trained on");
    }
  }

  void read_row(data::CsvCells& cells) {
    const std::size_t begin = out_.numbers.size();
    begin_ = cells.rest().data();
    // Cells arrive in the order of the file, and are stored in that of training.
    out_.numbers.resize(begin + inputs_);
    std::size_t column = 0;
    do {
      const std::string_view cell = cells.next();
      // The bound first: take_cell() indexes uses_.
      if (column >= uses_.size() || cells.is_malformed()) {
        fail(column, cells.is_malformed() ? "an unclosed quote, or text after a closing quote"
                                          : "more cells than the first line");
      }
      take_cell(uses_[column], cell, column, begin);
      ++column;
    } while (!cells.line_ended());
    if (column != uses_.size()) {
      fail(column,
           "the line ends, where the first one has " + std::to_string(uses_.size()) + " cells");
    }
  }

  void take_cell(std::size_t use, std::string_view cell, std::size_t column, std::size_t begin) {
    float number = 0;
    if (use == kLeftOut) {
      return;
    }
    if (use == kLabel && !model_.tells_numbers()) {
      // class_called() compares with the names of all classes, so its results are kept.
      auto found = labels_.find(cell);
      if (found == labels_.end()) {
        const std::optional<std::size_t> label = class_called(model_, cell);
        if (!label) {
          fail(column, shown(cell) + " is not a class of the model");
        }
        found = labels_.emplace(cell, *label).first;
      }
      out_.labels.push_back(found->second);
      return;
    }
    if (!data::read_number(cell, number) || !std::isfinite(number)) {
      fail(column, shown(cell) + " is not a finite number");
    }
    if (use == kLabel) {
      out_.targets.push_back(number);
    } else {
      out_.numbers[begin + use] = number;
    }
  }

  static std::string shown(std::string_view cell) { return "\"" + data::printable(cell) + "\""; }

  [[noreturn]] void fail(std::size_t column, const std::string& what) const {
    // Counted only for a message. A quoted cell may contain line ends, so a row is not always a
    // line.
    const auto lines = std::count(counted_, begin_, '\n');
    throw UnusableData(name_ + ": line " +
                       std::to_string(line_ + static_cast<std::uint64_t>(lines)) + ", column " +
                       std::to_string(column + 1) + ": " + what);
  }

  std::string_view text_;
  const std::string& name_;
  const TrainedModel& model_;
  std::size_t inputs_;
  char delimiter_ = ',';
  std::uint64_t line_ = 1;                                  // line number of the first row
  const char* counted_ = nullptr;                           // where the first row begins
  const char* begin_ = nullptr;                             // where the current row begins
  std::map<std::string, std::size_t, std::less<>> labels_;  // class by the text of its label
  std::vector<std::size_t> uses_;  // by column: index of the input, kLabel or kLeftOut
  Examples out_;
};

}  // namespace

Examples read_table(std::string_view text, const std::string& name, const TrainedModel& model) {
  return TableReader(text, name, model).read();
}

}  // namespace disttf::roles
