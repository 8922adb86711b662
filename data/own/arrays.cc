#include "data/own/arrays.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <system_error>
#include <utility>

#include "data/dataset.h"
#include "data/file.h"
#include "data/own/lower_case.h"
#include "data/own/npy.h"
#include "data/own/npz.h"
#include "data/own/row_source.h"
#include "data/own/shown_text.h"

namespace disttf::data {
namespace {

constexpr std::string_view kNpyEnding = ".npy";
constexpr std::array<std::string_view, 4> kExamplesWords = {"x", "data", "images", "features"};
constexpr std::array<std::string_view, 5> kLabelsWords = {"y", "label", "labels", "target",
                                                          "targets"};
// The size of a block; larger ones would delay on_progress.
constexpr std::size_t kArrayBlockBytes = std::size_t{16} << 20U;
// Limits the index of the converted form, which has an entry per column.
constexpr std::uint64_t kMostArrayColumns = std::uint64_t{1} << 18U;

template <typename Words>
bool is_one_of(const Words& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Returns up to a dozen names, formatted for a message.
std::string names_text(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    text += (i == 0 ? "" : ", ") + printable(names[i]);
  }
  return text.empty() ? "nothing" : names.size() > kMost ? text + ", ..." : text;
}

// Returns the pairs among `places`, whose keys are names without the extension. `what` is the
// archive or folder, for error messages.
std::vector<ArrayPair> pairs_of(const std::map<std::string, ArrayLocation>& places,
                                const std::string& what) {
  // Training first, because its columns are those of the set. Arrays without a part take the place
  // of training.
  constexpr std::array<std::optional<Part>, 4> kInOrder = {Part::kTrain, std::nullopt,
                                                           Part::kValidation, Part::kTest};
  std::vector<ArrayPair> pairs;
  for (const std::optional<Part>& part : kInOrder) {
    std::array<const ArrayLocation*, 2> found{};  // examples, labels
    std::array<std::string, 2> names;
    for (const auto& [name, place] : places) {
      const auto parsed = parse_array_name(name);
      if (!parsed || parsed->part != part) continue;
      const std::size_t which = parsed->is_examples ? 0 : 1;
      if (found.at(which) != nullptr) {
        throw UnusableData("--data: " + what + " has both " + printable(names.at(which)) + " and " +
                           printable(name) + "; one of them is allowed");
      }
      found.at(which) = &place;
      names.at(which) = name;
    }
    // Examples without labels are an error instead of being ignored, because they are probably
    // misnamed.
    if ((found[0] == nullptr) != (found[1] == nullptr)) {
      throw UnusableData("--data: " + what + " has " +
                         printable(names.at(found[0] == nullptr ? 1 : 0)) + " and no " +
                         (found[0] == nullptr ? "examples" : "labels") + " that belong to it");
    }
    if (found[0] == nullptr || found[1] == nullptr) continue;
    // Training comes before the arrays without a part in kInOrder, so a pair that exists already is
    // training.
    if (!part && !pairs.empty()) {
      throw UnusableData("--data: " + what + " has both " + printable(names[0]) +
                         " and examples named train; only one of them is allowed");
    }
    pairs.push_back({.part = part, .examples = *found[0], .labels = *found[1]});
  }
  const bool trains = !pairs.empty() && pairs.front().part.value_or(Part::kTrain) == Part::kTrain;
  if (!pairs.empty() && !trains) {
    throw UnusableData("--data: " + what +
                       " has no arrays to train on, such as x_train and y_train");
  }
  return pairs;
}

// Reads an array from its beginning.
class NpyArray {
 public:
  explicit NpyArray(const ArrayLocation& place)
      : where_(place.text()),
        stream_(place.entry.empty() ? open_file_bytes(place.path)
                                    : open_zip_member(place.path, place.entry)) {
    std::array<std::uint8_t, kNpyPrefixBytes> prefix{};
    // The prefix contains the first bytes of the dict, so those are kept and only the rest is read.
    const std::size_t length = stream_->read(prefix);
    const auto [begin, bytes] = parse_npy_prefix(std::span(prefix).first(length), where_);
    std::string dict(prefix.begin() + static_cast<std::ptrdiff_t>(begin), prefix.end());
    const std::size_t before = dict.size();
    // A dict shorter than what the prefix holds of it is refused below: no header of NumPy is that
    // short.
    dict.resize(std::max(bytes, before));
    if (bytes < before ||
        stream_->read(
            std::span(reinterpret_cast<std::uint8_t*>(dict.data()), dict.size()).subspan(before)) !=
            bytes - before) {
      refuse("it is shorter than its header says");
    }
    header_ = parse_npy_dict(dict, where_);
  }
  [[nodiscard]] const NpyHeader& header() const noexcept { return header_; }
  [[nodiscard]] std::uint64_t rows() const noexcept { return header_.shape[0]; }
  [[nodiscard]] std::uint64_t row_bytes() const noexcept {
    return header_.row_elements() * header_.element_bytes;
  }
  // Reads the next `rows` rows into `elements`.
  void read(std::size_t rows, std::vector<std::uint8_t>& elements) {
    // Bounded by the size of a block, except for a single row that is larger.
    elements.resize(rows * static_cast<std::size_t>(row_bytes()));
    if (stream_->read(elements) != elements.size()) {
      refuse("it is shorter than its shape says, " + header_.text());
    }
  }
  void expect_end() {
    std::array<std::uint8_t, 1> more{};
    if (stream_->read(more) != 0) {
      refuse("it is longer than its shape says, " + header_.text());
    }
  }
  [[noreturn]] void refuse(const std::string& sentence) const {
    throw UnusableData(where_ + ": " + sentence);
  }

 private:
  std::string where_;
  std::unique_ptr<ByteStream> stream_;
  NpyHeader header_;
};

bool has_image_shape(const NpyHeader& header) {
  // The number of dimensions alone separates images from rows of numbers, which have two.
  return header.is_bytes() && (header.shape.size() == 3 || header.shape.size() == 4);
}

ImageShape image_shape_of(const NpyArray& array) {
  constexpr std::uint64_t kMostChannels = 4;
  const std::vector<std::uint64_t>& shape = array.header().shape;
  const std::uint64_t channels = shape.size() == 4 ? shape[3] : 1;
  // A common layout of PyTorch, so the message shows the conversion.
  if (channels > kMostChannels && shape[1] <= kMostChannels) {
    array.refuse("it is " + array.header().text() +
                 ", images with their channels first; numpy.moveaxis(x, 1, -1) makes them last");
  }
  if (channels > kMostChannels || array.row_bytes() == 0 || array.row_bytes() > kMostImageBytes) {
    array.refuse("it is " + array.header().text() +
                 ", and images have 1 to 4 channels, last, and " + "at most " +
                 std::to_string(kMostImageBytes >> 20U) + " MiB");
  }
  return {.height = static_cast<std::size_t>(shape[1]),
          .width = static_cast<std::size_t>(shape[2]),
          .channels = static_cast<std::size_t>(channels)};
}

class ArraySource final : public RowSource {
 public:
  ArraySource(const ArrayPair& arrays, bool label_is_number)
      : examples_(arrays.examples), labels_(arrays.labels), label_is_number_(label_is_number) {
    // Headers only, so that unusable arrays are refused before a long conversion begins.
    check_examples();
    check_labels();
    left_ = examples_.rows();
    // The size of a row, as read or as converted floats, whichever is larger.
    const std::uint64_t row_bytes = std::max(examples_.row_bytes(), 4 * columns_.size());
    block_rows_ = std::max<std::uint64_t>(1, kArrayBlockBytes / row_bytes);
  }

  [[nodiscard]] const std::vector<std::string>& columns() const noexcept override {
    return columns_;
  }
  [[nodiscard]] const std::string& label_column() const noexcept override { return label_; }
  [[nodiscard]] std::optional<ImageShape> images() const noexcept override { return images_; }
  [[nodiscard]] std::uint64_t bytes_read() const noexcept override { return bytes_read_; }
  [[nodiscard]] std::uint64_t converted_bytes() const noexcept override {
    const std::uint64_t row_bytes = images_ ? images_->size() : columns_.size() * sizeof(float);
    std::uint64_t product = 0;
    // Checked after all parts, so an incomplete pair is reported first.
    return __builtin_mul_overflow(row_bytes, examples_.rows(), &product) ? UINT64_MAX : product;
  }

  [[nodiscard]] bool next(RowBlock& block) override {
    if (left_ == 0) {
      return false;
    }
    const auto rows = static_cast<std::size_t>(std::min(left_, block_rows_));
    block = {};
    take_examples(rows, block);
    take_labels(rows, block);
    left_ -= rows;
    // The data must end exactly here, otherwise the shape does not describe the file.
    if (left_ == 0) {
      examples_.expect_end();
      labels_.expect_end();
    }
    return true;
  }

 private:
  void check_examples() {
    const NpyHeader& header = examples_.header();
    if (has_image_shape(header)) {
      images_ = image_shape_of(examples_);
      return;
    }
    if (header.shape.size() != 2) {
      examples_.refuse("it is " + header.text() +
                       "; images are (rows, height, width) or (rows, height, width, channels) of "
                       "|u1, and rows of numbers (rows, columns)");
    }
    if (header.shape[1] == 0 || header.shape[1] > kMostArrayColumns) {
      examples_.refuse("it has " + std::to_string(header.shape[1]) + " columns; 1 to " +
                       std::to_string(kMostArrayColumns) + " are allowed");
    }
    // Arrays have no names of columns, so the columns are numbered as in a table without names.
    for (std::uint64_t column = 1; column <= header.shape[1]; ++column) {
      columns_.push_back(std::to_string(column));
    }
  }
  void check_labels() const {
    const NpyHeader& header = labels_.header();
    // One-hot labels are common in Keras.
    if (header.shape.size() == 2 && header.shape[1] > 1) {
      labels_.refuse("it is " + header.text() +
                     "; one label a row is expected, which argmax(axis=1) makes of classes that "
                     "have a column each");
    }
    if (header.shape.empty() || header.row_elements() != 1) {
      labels_.refuse("it is " + header.text() + "; labels are (rows,) or (rows, 1)");
    }
    // next() reads both arrays in step and relies on equal numbers of rows.
    if (labels_.rows() != examples_.rows() || labels_.rows() == 0) {
      labels_.refuse("it has " + std::to_string(labels_.rows()) + " labels for " +
                     std::to_string(examples_.rows()) +
                     " examples; as many are expected, and one at least");
    }
  }
  void take_examples(std::size_t rows, RowBlock& block) {
    if (images_) {
      examples_.read(rows, block.pixels);
      bytes_read_ += block.pixels.size();
      return;
    }
    examples_.read(rows, elements_);
    bytes_read_ += elements_.size();
    block.numbers.resize(rows * columns_.size());
    const std::size_t wrong = npy_numbers(examples_.header(), elements_, block.numbers);
    if (wrong != block.numbers.size()) {
      examples_.refuse("row " + std::to_string(row_of(wrong / columns_.size())) + ", column " +
                       std::to_string(wrong % columns_.size() + 1) +
                       ": it is not a number of 32 bits");
    }
  }
  void take_labels(std::size_t rows, RowBlock& block) {
    // The buffer is free: the examples have been converted into the block.
    labels_.read(rows, elements_);
    // Labels that become classes are checked as numbers, too: NaN is no class.
    std::vector<float> numbers(rows);
    const std::size_t wrong = npy_numbers(labels_.header(), elements_, numbers);
    if (wrong != rows) {
      labels_.refuse("row " + std::to_string(row_of(wrong)) +
                     ": the label is not a number of 32 bits");
    }
    if (label_is_number_) {
      block.targets = std::move(numbers);
      return;
    }
    // A fresh list of words for each block, as RowBlock requires.
    BlockWords words(block.words);
    const std::size_t size = labels_.header().element_bytes;
    for (std::size_t row = 0; row < rows; ++row) {
      block.labels.push_back(words.place_of(
          npy_word(labels_.header(), std::span(elements_).subspan(row * size, size))));
      if (block.words.size() > kMostBlockWords) {
        labels_.refuse(
            "it has more than " + std::to_string(kMostBlockWords) +
            " different labels, which is too many for classes; --label_type number predicts "
            "numbers");
      }
    }
  }
  // Returns the row number in the array, from 0 as in NumPy; `row` is its index in the block.
  [[nodiscard]] std::uint64_t row_of(std::size_t row) const {
    return examples_.rows() - left_ + row;
  }

  NpyArray examples_;
  NpyArray labels_;
  const bool label_is_number_;
  std::optional<ImageShape> images_;
  std::vector<std::string> columns_;
  const std::string label_ = "label";
  std::uint64_t left_ = 0;  // rows
  std::uint64_t block_rows_ = 1;
  std::uint64_t bytes_read_ = 0;        // of the examples
  std::vector<std::uint8_t> elements_;  // of the current block
};

}  // namespace

std::string ArrayLocation::text() const {
  return entry.empty() ? path.string() : path.string() + ": " + printable(entry);
}

std::optional<ArrayName> parse_array_name(std::string_view name) {
  constexpr std::string_view kBetween = "_-. ";
  const std::string small = lower_case(std::string(name));
  const std::string_view text = small;
  const std::size_t middle = text.find_first_of(kBetween);
  std::string_view word = text.substr(0, middle);
  std::optional<Part> part;
  if (middle != std::string_view::npos) {
    const std::string_view second = text.substr(middle + 1);
    // Both x_train and train_x are common.
    part = part_from_word(second);
    if (!part) {
      part = part_from_word(word);
      word = second;
    }
    if (!part) return std::nullopt;
  }
  const bool is_examples = is_one_of(kExamplesWords, word);
  if (!is_examples && !is_one_of(kLabelsWords, word)) {
    return std::nullopt;
  }
  return ArrayName{.is_examples = is_examples, .part = part};
}

std::vector<ArrayPair> arrays_of_archive(const std::filesystem::path& path) {
  std::map<std::string, ArrayLocation> places;
  std::vector<std::string> names;
  for (const ZipMember& member : zip_members(path)) {
    std::string name = member.name;
    if (name.ends_with(kNpyEnding)) name.resize(name.size() - kNpyEnding.size());
    // A ZIP archive may contain a name twice, and readers disagree about which one counts.
    if (!places.emplace(name, ArrayLocation{path, member.name, member.size_bytes}).second) {
      throw UnusableData("--data: " + path.string() + " has " + printable(member.name) + " twice");
    }
    names.push_back(std::move(name));
  }
  std::vector<ArrayPair> pairs = pairs_of(places, path.string());
  if (pairs.empty()) {
    throw UnusableData("--data: " + path.string() +
                       " has no arrays x_train and y_train, or X and y; what it has is " +
                       names_text(names));
  }
  return pairs;
}

std::vector<ArrayPair> arrays_in_folder(const std::filesystem::path& directory) {
  std::map<std::string, ArrayLocation> places;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::filesystem::path& path = entry.path();
    if (lower_case(path.extension().string()) != kNpyEnding ||
        !parse_array_name(path.stem().string())) {
      continue;
    }
    struct stat status {};
    static_cast<void>(open_for_reading(path, status));
    places.emplace(path.stem().string(),
                   ArrayLocation{path, {}, static_cast<std::uint64_t>(status.st_size)});
  }
  if (error) throw std::system_error(error, "--data: cannot read " + directory.string());
  return pairs_of(places, directory.string());
}

bool are_images(const ArrayLocation& examples) {
  return has_image_shape(NpyArray(examples).header());
}

std::unique_ptr<RowSource> open_arrays(const ArrayPair& arrays, bool label_is_number) {
  return std::make_unique<ArraySource>(arrays, label_is_number);
}

}  // namespace disttf::data
