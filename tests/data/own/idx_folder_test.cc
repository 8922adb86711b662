// Folders of IDX files: which files are recognized, and the error messages.
#include "data/own/idx_folder.h"

#include <gmock/gmock.h>

#include <string>

#include "data/idx.h"
#include "data/own/row_source.h"
#include "math/random.h"
#include "tests/data/own/numbered_images.h"
#include "tests/data/scratch.h"

namespace disttf::data {
namespace {

using test::Bytes;

class IdxFolder : public testing::Test {
 protected:
  // All pixels of an image have the image's number as their value; the classes are 0, 1, 2 in turn.
  static Bytes images(std::uint32_t rows, const ImageShape& shape) {
    Bytes bytes = images_header(rows, shape);
    for (std::uint32_t row = 0; row < rows; ++row) {
      bytes.insert(bytes.end(), shape.size(), static_cast<std::uint8_t>(row));
    }
    return bytes;
  }
  static Bytes labels(std::uint32_t rows) {
    Bytes bytes = labels_header(rows);
    for (std::uint32_t row = 0; row < rows; ++row) {
      bytes.push_back(static_cast<std::uint8_t>(row % 3));
    }
    return bytes;
  }
  void put(const std::string& name, const Bytes& bytes) {
    test::write(scratch_.path() / name, bytes);
  }
  void put_all(const ImageShape& shape = {.height = 3, .width = 2, .channels = 1}) {
    put("train-images-idx3-ubyte", images(100, shape));
    put("train-labels-idx1-ubyte", labels(100));
    put("t10k-images-idx3-ubyte", images(10, shape));
    put("t10k-labels-idx1-ubyte", labels(10));
  }
  Dataset open() {
    return open_idx_folder(
        scratch_.path(), "mine",
        {{}, static_cast<std::uint32_t>(math::Purpose::kHoldOut), &math::random_bits});
  }
  std::string refusal() {
    return test::refusal_of([&] { static_cast<void>(open()); }, scratch_.path());
  }
  test::ScratchDirectory scratch_;
};

TEST_F(IdxFolder, HasItsPartsAndShape) {
  put_all();
  const Dataset dataset = open();
  EXPECT_EQ(dataset.shape, (ImageShape{.height = 3, .width = 2, .channels = 1}));
  EXPECT_EQ(dataset.classes, 3U);
  EXPECT_EQ(dataset.train.rows(), 90U) << "the share for the test does not count";
  EXPECT_EQ(dataset.validation.rows(), 10U);
  EXPECT_EQ(dataset.test.rows(), 10U);
  test::expect_each_once(dataset);
}

TEST_F(IdxFolder, MayBeCompressedAndHaveChannelsAndLongerNames) {
  const ImageShape colours{.height = 2, .width = 2, .channels = 3};
  put("emnist-letters-train-images-idx4-ubyte.gz", test::gzip(images(40, colours)));
  put("emnist-letters-train-labels-idx1-ubyte.gz", test::gzip(labels(40)));
  put("emnist-letters-test-images-idx4-ubyte.gz", test::gzip(images(4, colours)));
  put("emnist-letters-test-labels-idx1-ubyte", labels(4));
  put("emnist-letters-test-labels-idx1-ubyte.gz", {1, 2, 3});  // unused
  put("emnist-letters-mapping.txt", {1});
  EXPECT_TRUE(has_idx_files(scratch_.path()));
  EXPECT_EQ(open().shape, colours);
  EXPECT_EQ(open().train.rows(), 36U);
}

TEST_F(IdxFolder, KnowsNamesInAnyCase) {
  const ImageShape shape{.height = 2, .width = 2, .channels = 1};
  put("TRAIN-IMAGES-IDX3-UBYTE", images(40, shape));
  put("Train-Labels-idx1-ubyte.GZ", test::gzip(labels(40)));
  put("T10K-images-idx3-ubyte", images(4, shape));
  put("t10k-LABELS-idx1-ubyte", labels(4));
  EXPECT_EQ(open().train.rows(), 36U);
}

TEST_F(IdxFolder, IsNoneWithoutSuchFiles) {
  put("train.csv", {1});
  put("images-idx3-ubyte", images(1, {}));
  EXPECT_FALSE(has_idx_files(scratch_.path()));
  EXPECT_EQ(refusal(),
            "--data: " + scratch_.path().string() + " has no IDX file of the train images");
}

TEST_F(IdxFolder, HasAChecksumOfWhatIsInIt) {
  put_all();
  const std::string checksum = open().checksum;
  EXPECT_EQ(open().checksum, checksum);
  Bytes changed = labels(100);
  changed.back() ^= 1U;
  put("train-labels-idx1-ubyte", changed);
  EXPECT_NE(open().checksum, checksum);
}

TEST_F(IdxFolder, RefusesFilesThatDoNotFit) {
  put_all();
  put("train-labels-idx1-ubyte", labels(99));
  EXPECT_EQ(refusal(),
            "train-images-idx3-ubyte has 100 images, train-labels-idx1-ubyte has 99 labels; "
            "as many are expected, and one at least");
  put_all();
  put("t10k-images-idx3-ubyte", images(10, {.height = 2, .width = 3, .channels = 1}));
  EXPECT_EQ(refusal(), "--data: " + scratch_.path().string() +
                           ": images of 3x2x1 to train on, and of 2x3x1 for the test");
  put_all();
  put("t10k-labels-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 9, 1});
  EXPECT_EQ(
      refusal(),
      "t10k-labels-idx1-ubyte: expected 9 bytes for shape [9] after the header, found 1 bytes: "
      "the IDX file is shorter than its header says");
  put_all();
  put("test-labels-idx1-ubyte", labels(10));
  EXPECT_EQ(refusal(),
            "--data: " + scratch_.path().string() +
                " has two files of the test labels, t10k-labels-idx1-ubyte and "
                "test-labels-idx1-ubyte; of two data sets, move one to a folder of its own");
}

// The classes are the labels that occur, without the gaps.
TEST_F(IdxFolder, HasNoClassesForGapsBetweenLabels) {
  const ImageShape shape{.height = 1, .width = 1, .channels = 1};
  const auto labels_of = [](std::uint32_t rows) {
    Bytes bytes = labels_header(rows);
    for (std::uint32_t row = 0; row < rows; ++row) bytes.push_back(row % 2 == 0 ? 7 : 200);
    return bytes;
  };
  put("train-images-idx3-ubyte", images(100, shape));
  put("train-labels-idx1-ubyte", labels_of(100));
  put("t10k-images-idx3-ubyte", images(10, shape));
  put("t10k-labels-idx1-ubyte", labels_of(10));
  const Dataset dataset = open();
  EXPECT_EQ(dataset.classes, 2U);
  EXPECT_THAT(dataset.class_names, testing::ElementsAre("7", "200"));
  EXPECT_EQ(dataset.test.labels[0], 0);
  EXPECT_EQ(dataset.test.labels[1], 1);
  const std::string checksum = dataset.checksum;
  Bytes others = labels_of(100);
  for (std::uint8_t& label : others) label = label == 200 ? 201 : label;
  put("train-labels-idx1-ubyte", others);
  EXPECT_EQ(open().classes, 3U) << "one of them in the test alone";
  EXPECT_NE(open().checksum, checksum);
}

TEST_F(IdxFolder, RefusesATestOfOtherClasses) {
  put_all();
  Bytes others = labels_header(10);
  others.insert(others.end(), 10, 9);
  put("t10k-labels-idx1-ubyte", others);
  EXPECT_EQ(refusal(), "--data: " + scratch_.path().string() +
                           ": no label for test occurs among the training labels; both need "
                           "the same classes");
}

// A gigabyte of zeros after ten labels: inflation must stop at the size in the header.
TEST_F(IdxFolder, InflatesNoMoreThanTheHeaderSays) {
  put_all();
  std::filesystem::remove(scratch_.path() / "t10k-labels-idx1-ubyte");
  Bytes bomb = labels(10);
  bomb.resize(std::size_t{64} << 20U);
  put("t10k-labels-idx1-ubyte.gz", test::gzip(bomb));
  std::size_t blocks = 0;
  EXPECT_EQ(test::refusal_of(
                [&] {
                  static_cast<void>(open_idx_folder(
                      scratch_.path(), "mine",
                      {{}, static_cast<std::uint32_t>(math::Purpose::kHoldOut), &math::random_bits},
                      [&blocks] { ++blocks; }));
                },
                scratch_.path()),
            "t10k-labels-idx1-ubyte.gz: the IDX file is longer than its header says");
  EXPECT_LT(blocks, 20U) << "pieces of 256 KiB";
}

TEST_F(IdxFolder, RefusesACompressedFileThatIsNone) {
  put_all();
  std::filesystem::remove(scratch_.path() / "t10k-labels-idx1-ubyte");
  put("t10k-labels-idx1-ubyte.gz", {1, 2, 3});
  EXPECT_TRUE(refusal().starts_with("t10k-labels-idx1-ubyte.gz: ")) << refusal();
}

}  // namespace
}  // namespace disttf::data
