// assemble(): makes a data set of the files' contents.
#include <algorithm>
#include <cassert>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "data/checksums.h"
#include "data/error.h"
#include "data/file_set.h"
#include "data/idx.h"
#include "data/records.h"

namespace disttf::data {
namespace {

using FileContents = std::vector<std::vector<std::uint8_t>>;

// The training part or the test part of a set.
struct SetPart {
  std::span<const std::uint8_t> images;
  std::span<const std::uint8_t> labels;
  // Storage for the spans if they cannot refer to a file's contents.
  std::vector<std::uint8_t> own_images;
  std::vector<std::uint8_t> own_labels;
};

// The memory that the data set's spans refer to. Moving a vector does not move its elements.
struct SetStorage {
  FileContents contents;
  SetPart train;
  SetPart test;
};

// Returns the SHA-256 over all files, or the one that the set pins.
std::string identity_of(const FileSet& set, const FileContents& contents) {
  if (!set.checksum.empty()) return std::string(set.checksum);
  Sha256 identity;
  for (const std::vector<std::uint8_t>& bytes : contents) {
    identity.update(std::as_bytes(std::span(bytes)));
  }
  return identity.hex();
}

// Returns a writable view of `part`, which lies in `bytes`.
std::span<std::uint8_t> writable(std::vector<std::uint8_t>& bytes,
                                 std::span<const std::uint8_t> part) {
  return std::span(bytes).subspan(static_cast<std::size_t>(part.data() - bytes.data()),
                                  part.size());
}

// Transposes each image.
void stand_upright(std::span<std::uint8_t> images, const ImageShape& shape) {
  assert(shape.height == shape.width && shape.channels == 1);
  const std::size_t side = shape.height;
  for (std::size_t start = 0; start < images.size(); start += shape.size()) {
    for (std::size_t y = 0; y < side; ++y) {
      for (std::size_t x = 0; x < y; ++x) {
        std::swap(images[start + y * side + x], images[start + x * side + y]);
      }
    }
  }
}

std::error_code take_images(const FileSet& set, std::vector<std::uint8_t>& bytes, SetPart& part,
                            std::string& detail) {
  const std::error_code error = parse_images(bytes, set.shape(), part.images, detail);
  if (!error && set.has_columns_first) stand_upright(writable(bytes, part.images), set.shape());
  return error;
}

std::error_code take_labels(const FileSet& set, std::vector<std::uint8_t>& bytes, SetPart& part,
                            std::string& detail) {
  // Labels that do not begin at 0 (EMNIST letters: 1 to 26) are checked against their own limits
  // and shifted.
  if (set.first_label == 0) return parse_labels(bytes, set.classes, part.labels, detail);
  constexpr std::size_t kAnyByte = 256;
  if (const auto error = parse_labels(bytes, kAnyByte, part.labels, detail)) return error;
  for (std::uint8_t& label : writable(bytes, part.labels)) {
    const int found = label - set.first_label;
    if (found < 0 || static_cast<std::size_t>(found) >= set.classes) {
      detail = sentence("labels " + std::to_string(set.first_label) + " to " +
                            std::to_string(set.first_label + set.classes - 1),
                        std::to_string(label));
      return DataError::kBadLabel;
    }
    label = static_cast<std::uint8_t>(found);
  }
  return {};
}

// Returns the number of rows of the training files or of the test files.
std::size_t rows_of(const FileSet& set, bool is_test) {
  std::size_t rows = 0;
  for (const SetFile& file : set.files) rows += file.is_test == is_test ? file.rows : 0U;
  return rows;
}

std::error_code take_records(const FileSet& set, const SetFile& file,
                             std::vector<std::uint8_t>& bytes, SetPart& part, std::string& detail) {
  const std::size_t rows = rows_of(set, file.is_test);
  // Several record files append to one vector; with the reserve none of them moves what the earlier
  // ones stored.
  part.own_images.reserve(rows * set.shape().size());
  part.own_labels.reserve(rows);
  const auto error =
      parse_records(bytes, set.shape(), set.classes, part.own_images, part.own_labels, detail);
  bytes = {};  // its contents have been copied
  // Set again for each file, because the vector has grown.
  part.images = part.own_images;
  part.labels = part.own_labels;
  return error;
}

std::error_code take_file(const FileSet& set, const SetFile& file, std::vector<std::uint8_t>& bytes,
                          SetPart& part, std::string& detail) {
  switch (file.kind) {
    case FileKind::kImages:
      return take_images(set, bytes, part, detail);
    case FileKind::kLabels:
      return take_labels(set, bytes, part, detail);
    case FileKind::kRecords:
      return take_records(set, file, bytes, part, detail);
    case FileKind::kLabelTable:
      break;
  }
  const std::error_code error =
      parse_label_table(bytes, file.columns, set.classes, part.own_labels, detail);
  bytes = {};
  part.labels = part.own_labels;
  return error;
}

}  // namespace

Dataset assemble(const FileSet& set, std::vector<std::vector<std::uint8_t>> contents) {
  assert(contents.size() == set.files.size());
  // Before anything is changed: the parsers transpose images and shift labels in place.
  std::string checksum = identity_of(set, contents);
  auto storage = std::make_shared<SetStorage>();
  storage->contents = std::move(contents);
  for (std::size_t i = 0; i < set.files.size(); ++i) {
    const SetFile& file = set.files[i];
    std::vector<std::uint8_t>& bytes = storage->contents[i];
    // take_file() may release the contents, so their size is read first.
    const std::size_t size_bytes = bytes.size();
    SetPart& part = file.is_test ? storage->test : storage->train;
    std::string detail;
    if (const std::error_code error = take_file(set, file, bytes, part, detail)) {
      throw std::system_error(error, std::string(file.name) + ": " + detail);
    }
    // After parsing: the parser's error says more about a file of a wrong size.
    const FileCheck check = check_size(file.name, file.size_bytes(), size_bytes);
    if (check.state != FileState::kReady) throw std::system_error(check.error, check.what);
  }
  const SetPart& train = storage->train;
  const SetPart& test = storage->test;
  // The first rows validate. They are a view of the same memory as the training rows, not a copy.
  const std::size_t held_out = set.validation_rows;
  const std::size_t held_out_bytes = held_out * set.shape().size();
  assert(held_out <= train.labels.size());
  return {.name = std::string(set.name),
          .checksum = std::move(checksum),
          .shape = set.shape(),
          .classes = set.classes,
          .class_names = set.class_names,
          .train = {.images = train.images.subspan(held_out_bytes),
                    .labels = train.labels.subspan(held_out)},
          .validation = {.images = train.images.first(held_out_bytes),
                         .labels = train.labels.first(held_out)},
          .test = {.images = test.images, .labels = test.labels},
          .storage = std::move(storage)};
}

}  // namespace disttf::data
