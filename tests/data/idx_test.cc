#include "data/idx.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "data/dataset.h"
#include "data/error.h"
#include "tests/data/scratch.h"

namespace disttf::data {
namespace {

using test::Bytes;

// Returns a file of any type and shape, with `elements` zero bytes after the header.
Bytes idx(std::uint8_t type, std::initializer_list<std::uint32_t> sizes, std::size_t elements) {
  Bytes bytes{0, 0, type, static_cast<std::uint8_t>(sizes.size())};
  for (const std::uint32_t size : sizes) {
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
      bytes.push_back(static_cast<std::uint8_t>(size >> shift));
    }
  }
  bytes.resize(bytes.size() + elements);
  return bytes;
}

Bytes images(std::uint32_t rows) { return idx(8, {rows, 28, 28}, rows * 784); }
Bytes labels(std::initializer_list<std::uint8_t> values) {
  Bytes bytes = idx(8, {static_cast<std::uint32_t>(values.size())}, 0);
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

struct Result {
  std::error_code error;
  std::string detail;
};

Result parse(const Bytes& bytes) {
  IdxView view;
  view.dimensions = 77;
  Result result;
  result.error = parse_idx(bytes, view, result.detail);
  EXPECT_TRUE(!result.error || view.dimensions == 77) << "the output was touched";
  return result;
}

Result parse_as_images(const Bytes& bytes) {
  std::span<const std::uint8_t> out;
  Result result;
  result.error = parse_images(bytes, {}, out, result.detail);
  return result;
}

Result parse_as_labels(const Bytes& bytes) {
  std::span<const std::uint8_t> out;
  Result result;
  result.error = parse_labels(bytes, 10, out, result.detail);
  return result;
}

TEST(Idx, FindsShapeAndElements) {
  Bytes bytes = idx(8, {2, 3, 4}, 24);
  bytes.back() = 9;
  IdxView view;
  std::string detail;
  ASSERT_FALSE(parse_idx(bytes, view, detail));
  EXPECT_EQ(view.dimensions, 3U);
  EXPECT_EQ(view.sizes, (std::array<std::uint32_t, 4>{2, 3, 4, 0}));
  EXPECT_EQ(view.elements.data(), bytes.data() + 16);
  EXPECT_EQ(view.elements.size(), 24U);
  EXPECT_EQ(view.elements.back(), 9);
}

TEST(Idx, ReadsSizesAsBigEndian) {
  IdxView view;
  std::string detail;
  ASSERT_FALSE(parse_idx(idx(8, {0x010203}, 0x010203), view, detail));
  EXPECT_EQ(view.sizes[0], 0x010203U);
}

TEST(Idx, RefusesAFileThatDoesNotStartWithTwoZeros) {
  Bytes bytes = labels({1, 2});
  bytes[0] = '<';
  const Result result = parse(bytes);
  EXPECT_EQ(result.error, DataError::kIdxBadMagic);
  EXPECT_EQ(result.detail, "expected two zero bytes at the start, found 60 and 0");
}

TEST(Idx, RefusesANonZeroSecondByte) {
  Bytes bytes = labels({1, 2});
  bytes[1] = 1;
  EXPECT_EQ(parse(bytes).error, DataError::kIdxBadMagic);
}

TEST(Idx, RefusesEveryOtherElementType) {
  for (unsigned type = 0; type < 256; ++type) {
    if (type == 8) continue;
    EXPECT_EQ(parse(idx(static_cast<std::uint8_t>(type), {1}, 1)).error, DataError::kIdxBadType)
        << type;
  }
}

TEST(Idx, RefusesEveryOtherNumberOfDimensions) {
  for (unsigned dimensions = 0; dimensions < 256; ++dimensions) {
    if (dimensions == 1 || dimensions == 3 || dimensions == 4) continue;
    Bytes bytes = idx(8, {}, 4 * dimensions);  // every size 0: only the number is wrong
    bytes[3] = static_cast<std::uint8_t>(dimensions);
    EXPECT_EQ(parse(bytes).error, DataError::kIdxBadShape) << dimensions;
  }
}

TEST(Idx, CallsEveryPrefixTruncated) {
  const Bytes whole = idx(8, {2, 3, 4}, 24);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Bytes prefix(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(parse(prefix).error, DataError::kIdxTruncated) << "cut at " << size;
  }
}

TEST(Idx, NamesBothSizesOfATruncatedFile) {
  EXPECT_EQ(parse(idx(8, {2, 3, 4}, 20)).detail,
            "expected 24 bytes for shape [2, 3, 4] after the header, found 20 bytes");
}

TEST(Idx, RefusesATrailingByte) {
  const Result result = parse(idx(8, {2, 3, 4}, 25));
  EXPECT_EQ(result.error, DataError::kIdxTrailingBytes);
  EXPECT_EQ(result.detail,
            "expected 24 bytes for shape [2, 3, 4] after the header, found 25 bytes");
}

TEST(Idx, RefusesTheLargestSizes) {
  const std::uint32_t most = 0xFFFFFFFF;
  EXPECT_EQ(parse(idx(8, {most, most, most}, 1)).error, DataError::kIdxTruncated);
  EXPECT_EQ(parse(idx(8, {most}, 1)).error, DataError::kIdxTruncated);
}

TEST(Idx, RefusesSizesWhoseProductWrapsToZero) {
  // 2^31 * 2^31 * 4 = 2^64, which overflows to 0 in 64 bits: the number of bytes after the header.
  EXPECT_EQ(parse(idx(8, {0x80000000, 0x80000000, 4}, 0)).error, DataError::kIdxTruncated);
}

TEST(Idx, AcceptsASizeOfZeroWithNothingBehindIt) {
  EXPECT_FALSE(parse(idx(8, {0, 0xFFFFFFFF, 0xFFFFFFFF}, 0)).error);
  EXPECT_EQ(parse(idx(8, {0, 28, 28}, 1)).error, DataError::kIdxTrailingBytes);
}

TEST(IdxImages, GivesThePixels) {
  const Bytes bytes = images(3);
  std::span<const std::uint8_t> out;
  std::string detail;
  ASSERT_FALSE(parse_images(bytes, {}, out, detail));
  EXPECT_EQ(out.size(), 3U * 784);
  EXPECT_EQ(out.data(), bytes.data() + 16);
}

TEST(IdxImages, RefusesLabels) {
  const Result result = parse_as_images(labels({1, 2, 3}));
  EXPECT_EQ(result.error, DataError::kIdxBadShape);
  EXPECT_EQ(result.detail, "expected images, shape [rows, 28, 28], found [3]");
}

TEST(IdxImages, RefusesOtherHeights) {
  EXPECT_EQ(parse_as_images(idx(8, {1, 27, 28}, 27 * 28)).error, DataError::kIdxBadShape);
}

TEST(IdxImages, RefusesOtherWidths) {
  EXPECT_EQ(parse_as_images(idx(8, {1, 28, 29}, 28 * 29)).error, DataError::kIdxBadShape);
}

TEST(IdxImages, HaveTheShapeOfTheirSet) {
  const ImageShape shape{.height = 2, .width = 5, .channels = 3};
  const Bytes bytes = idx(8, {4, 2, 5, 3}, 4 * 30);
  std::span<const std::uint8_t> out;
  std::string detail;
  ASSERT_FALSE(parse_images(bytes, shape, out, detail)) << detail;
  EXPECT_EQ(out.size(), 4U * 30);
  EXPECT_EQ(parse_images(idx(8, {4, 2, 5}, 4 * 10), shape, out, detail), DataError::kIdxBadShape);
  EXPECT_EQ(detail, "expected images, shape [rows, 2, 5, 3], found [4, 2, 5]");
  EXPECT_EQ(parse_images(bytes, {.height = 2, .width = 5}, out, detail), DataError::kIdxBadShape);
  EXPECT_EQ(detail, "expected images, shape [rows, 2, 5], found [4, 2, 5, 3]");
}

TEST(IdxLabels, GivesTheLabels) {
  const Bytes bytes = labels({0, 9, 5});
  std::span<const std::uint8_t> out;
  std::string detail;
  ASSERT_FALSE(parse_labels(bytes, 10, out, detail));
  EXPECT_EQ(Bytes(out.begin(), out.end()), (Bytes{0, 9, 5}));
}

TEST(IdxLabels, RefusesImages) {
  EXPECT_EQ(parse_as_labels(images(1)).error, DataError::kIdxBadShape);
}

TEST(IdxLabels, RefusesALabelAboveNine) {
  const Result result = parse_as_labels(labels({0, 9, 10, 200}));
  EXPECT_EQ(result.error, DataError::kBadLabel);
  EXPECT_EQ(result.detail, "expected labels 0 to 9, found 10 in row 2");
}

TEST(IdxLabels, AreBelowTheNumberOfClasses) {
  std::span<const std::uint8_t> out;
  std::string detail;
  EXPECT_FALSE(parse_labels(labels({0, 46}), 47, out, detail));
  EXPECT_EQ(parse_labels(labels({0, 46}), 46, out, detail), DataError::kBadLabel);
  EXPECT_EQ(detail, "expected labels 0 to 45, found 46 in row 1");
}

// ---- Tables of labels ----

// Rows of eight columns: the label first, 1000 in all others.
Bytes label_table(std::initializer_list<std::uint32_t> values) {
  Bytes bytes = idx(12, {static_cast<std::uint32_t>(values.size()), 8}, 0);
  for (const std::uint32_t value : values) {
    for (std::size_t column = 0; column < 8; ++column) {
      const std::uint32_t number = column == 0 ? value : 1000;
      for (const unsigned shift : {24U, 16U, 8U, 0U}) {
        bytes.push_back(static_cast<std::uint8_t>(number >> shift));
      }
    }
  }
  return bytes;
}

Result parse_as_label_table(const Bytes& bytes, Bytes* labels = nullptr) {
  const Bytes untouched{7, 7, 7};
  Bytes out = untouched;
  Result result;
  result.error = parse_label_table(bytes, 8, 10, out, result.detail);
  EXPECT_TRUE(!result.error || out == untouched) << "the output was touched";
  if (labels != nullptr) *labels = out;
  return result;
}

TEST(IdxLabelTable, GivesTheFirstColumn) {
  Bytes found;
  const Result result = parse_as_label_table(label_table({0, 9, 5}), &found);
  EXPECT_FALSE(result.error) << result.detail;
  EXPECT_EQ(found, (Bytes{0, 9, 5}));
}

TEST(IdxLabelTable, MayBeEmpty) {
  Bytes found;
  EXPECT_FALSE(parse_as_label_table(label_table({}), &found).error);
  EXPECT_TRUE(found.empty());
}

TEST(IdxLabelTable, RefusesLabelsThatAreNoClass) {
  EXPECT_EQ(parse_as_label_table(label_table({0, 10})).error, DataError::kBadLabel);
  EXPECT_EQ(parse_as_label_table(label_table({0, 10})).detail,
            "expected labels 0 to 9, found 10 in row 1");
  // The lowest byte of 256 would be a valid label.
  EXPECT_EQ(parse_as_label_table(label_table({256})).detail,
            "expected labels 0 to 9, found 256 in row 0");
  EXPECT_EQ(parse_as_label_table(label_table({0xFFFFFFFF})).detail,
            "expected labels 0 to 9, found -1 in row 0");
}

TEST(IdxLabelTable, RefusesAnotherNumberOfColumns) {
  const Result result = parse_as_label_table(idx(12, {3, 7}, 3 * 7 * 4));
  EXPECT_EQ(result.error, DataError::kIdxBadShape);
  EXPECT_EQ(result.detail, "expected a table of labels, shape [rows, 8], found [3, 7]");
  EXPECT_EQ(parse_as_label_table(idx(12, {0xFFFFFFFF, 0}, 0)).error, DataError::kIdxBadShape);
}

TEST(IdxLabelTable, RefusesOtherFiles) {
  EXPECT_EQ(parse_as_label_table(labels({1, 2})).detail,
            "expected element type 12 (32-bit integer), found type 8");
  EXPECT_EQ(parse_as_label_table(idx(12, {8}, 32)).detail, "expected 2 dimensions, found 1");
}

TEST(IdxLabelTable, CallsEveryPrefixTruncated) {
  const Bytes whole = label_table({1, 2, 3});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Bytes prefix(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(parse_as_label_table(prefix).error, DataError::kIdxTruncated) << "cut at " << size;
  }
}

TEST(IdxLabelTable, RefusesATrailingByte) {
  Bytes bytes = label_table({1, 2});
  bytes.push_back(0);
  const Result result = parse_as_label_table(bytes);
  EXPECT_EQ(result.error, DataError::kIdxTrailingBytes);
  EXPECT_EQ(result.detail, "expected 64 bytes for shape [2, 8] after the header, found 65 bytes");
}

TEST(IdxLabelTable, RefusesSizesWhoseBytesWrapToZero) {
  // 2^31 rows of 2^31 numbers of 4 bytes: 2^64, which overflows to 0.
  EXPECT_EQ(parse_as_label_table(idx(12, {0x80000000, 0x80000000}, 0)).error,
            DataError::kIdxTruncated);
}

TEST(IdxHeaders, AreReadBackAsTheyWereWritten) {
  const auto images_start = images_header(70000, {});
  EXPECT_EQ(Bytes(images_start.begin(), images_start.end()), idx(8, {70000, 28, 28}, 0));
  const auto colours_start = images_header(70000, {.height = 32, .width = 31, .channels = 3});
  EXPECT_EQ(Bytes(colours_start.begin(), colours_start.end()), idx(8, {70000, 32, 31, 3}, 0));
  const auto labels_start = labels_header(70000);
  EXPECT_EQ(Bytes(labels_start.begin(), labels_start.end()), idx(8, {70000}, 0));
  const auto table_start = label_table_header(70000, 8);
  EXPECT_EQ(Bytes(table_start.begin(), table_start.end()), idx(12, {70000, 8}, 0));
}

}  // namespace
}  // namespace disttf::data
