// The real files, if ../shared/mnist exists beside the repository.
#include "data/mnist.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

#include "data/checksums.h"
#include "data/fashion_mnist.h"
#include "data/qmnist.h"
#include "tests/data/file_set_fixture.h"
#include "tests/data/scratch.h"
#include "tests/support/engines.h"

namespace disttf::data {
namespace {

TEST(Mnist, HasTheKnownSizes) {
  EXPECT_EQ(mnist().files[0].size_bytes(), 47040016U);
  EXPECT_EQ(mnist().files[1].size_bytes(), 60008U);
  EXPECT_EQ(mnist().files[2].size_bytes(), 7840016U);
  EXPECT_EQ(mnist().files[3].size_bytes(), 10008U);
}

class RealMnist : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const SetFile& file : mnist().files) {
      const auto source = std::filesystem::path(DISTTF_MNIST_DIRECTORY) / file.gz_name();
      if (!std::filesystem::exists(source)) GTEST_SKIP() << source << " is not there";
      std::filesystem::copy_file(source, directory_.path() / file.gz_name());
    }
  }
  test::ScratchDirectory directory_;
};

TEST_F(RealMnist, FitsItsChecksums) {
  for (const SetFile& file : mnist().files) {
    const FileCheck check = check_file(directory_.path(), file);
    EXPECT_EQ(check.state, FileState::kReady) << check.sentence();
  }
}

TEST_F(RealMnist, OpensWithTheSplitsOfTensorFlow) {
  const Dataset dataset = open_file_set(directory_.path(), mnist());
  EXPECT_EQ(dataset.name, "MNIST");
  EXPECT_EQ(dataset.train.labels.size(), 55000U);
  EXPECT_EQ(dataset.train.images.size(), 55000U * 784U);
  EXPECT_EQ(dataset.validation.labels.size(), 5000U);
  EXPECT_EQ(dataset.test.labels.size(), 10000U);
  // The well-known first training labels: 5, 0, 4, 1, 9, 2.
  constexpr std::array<std::uint8_t, 6> kFirst{5, 0, 4, 1, 9, 2};
  EXPECT_TRUE(std::equal(kFirst.begin(), kFirst.end(), dataset.validation.labels.begin()));
}

TEST_F(RealMnist, IsOpenedByManyProcessesAtOnce) {
  EXPECT_EQ(test::in_children(4,
                              [&] {
                                const Dataset dataset = open_file_set(directory_.path(), mnist());
                                return dataset.test.labels[0] == 7;
                              }),
            4);
  EXPECT_EQ(directory_.names().size(), 12U) << "four .gz, four extracted, four stamps";
}

TEST_F(RealMnist, ItsIdentityIsTheHashOfItsFourFiles) {
  static_cast<void>(open_file_set(directory_.path(), mnist()));
  Sha256 identity;
  for (const SetFile& file : mnist().files) {
    const test::Bytes bytes = test::read(directory_.path() / file.name);
    identity.update(std::as_bytes(std::span(bytes)));
  }
  EXPECT_EQ(identity.hex(), mnist().checksum);
}

// The real files, from Debian's package dataset-fashion-mnist.

class RealFashionMnist : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kPackage)) {
      test_support::skip_without_engine(
          "there is no /usr/share/datasets/fashion-mnist: apt-get install dataset-fashion-mnist");
    }
  }

  static constexpr const char* kPackage = "/usr/share/datasets/fashion-mnist";
  test::ScratchDirectory directory_;
};

TEST_F(RealFashionMnist, IsInThePackage) {
  for (const SetFile& file : fashion_mnist().files) {
    const FileCheck check = check_gz(std::filesystem::path(kPackage) / file.gz_name(), file);
    EXPECT_EQ(check.state, FileState::kReady) << check.sentence();
  }
}

TEST_F(RealFashionMnist, OpensFromThePackage) {
  const Dataset dataset =
      open_file_set(directory_.path(), fashion_mnist(), {.gz_directory = kPackage});
  EXPECT_EQ(dataset.name, "Fashion-MNIST");
  EXPECT_EQ(dataset.shape, ImageShape{});
  EXPECT_EQ(dataset.train.labels.size(), 55000U);
  EXPECT_EQ(dataset.test.labels.size(), 10000U);
  ASSERT_EQ(dataset.class_names.size(), dataset.classes);
  // The first training images are an ankle boot and two tops, as the authors' page shows.
  constexpr std::array<std::uint8_t, 3> kFirst{9, 0, 0};
  EXPECT_TRUE(std::equal(kFirst.begin(), kFirst.end(), dataset.validation.labels.begin()));
  EXPECT_EQ(dataset.class_names[9], "Ankle boot");
}

TEST_F(RealFashionMnist, ItsIdentityIsTheHashOfItsFourFiles) {
  static_cast<void>(open_file_set(directory_.path(), fashion_mnist(), {.gz_directory = kPackage}));
  Sha256 identity;
  for (const SetFile& file : fashion_mnist().files) {
    const test::Bytes bytes = test::read(directory_.path() / file.name);
    identity.update(std::as_bytes(std::span(bytes)));
  }
  EXPECT_EQ(identity.hex(), fashion_mnist().checksum);
}

// Sets with label tables, like QMNIST's. The test creates the files in the same format.

class LabelTableFileSetTest : public FileSetTest {
 protected:
  LabelTableFileSetTest() {
    set_.checksum = {};
    make_table(1, 30);
    make_table(3, 10);
  }

  // Writes the labels of file i as a table of three columns.
  void make_table(std::size_t i, std::uint32_t rows) {
    const auto start = label_table_header(rows, 3);
    Bytes table(start.begin(), start.end());
    for (std::uint32_t row = 0; row < rows; ++row) {
      table.insert(table.end(), {0, 0, 0, label(row), 1, 2, 3, 4, 5, 6, 7, 8});
    }
    contents_[i] = table;
    gz_[i] = test::gzip(table);
    hashes_[i] = {hash(table), hash(gz_[i])};
    SetFile& file = files_[i];
    file.kind = FileKind::kLabelTable;
    file.columns = 3;
    file.sha256 = hashes_[i][0];
    file.gz_bytes = gz_[i].size();
    file.gz_sha256 = hashes_[i][1];
  }

  static std::uint8_t label(std::size_t row) { return static_cast<std::uint8_t>(row % 10); }

  // Returns whether these are the labels from row `first` on.
  static bool are_labels(std::span<const std::uint8_t> labels, std::size_t first,
                         std::size_t count) {
    if (labels.size() != count) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (labels[i] != label(first + i)) return false;
    }
    return true;
  }

  static bool has_all_labels(const Dataset& dataset) {
    return are_labels(dataset.validation.labels, 0, 5) && are_labels(dataset.train.labels, 5, 25) &&
           are_labels(dataset.test.labels, 0, 10);
  }
};

TEST_F(LabelTableFileSetTest, HasTheFirstColumnAsLabels) {
  put_all_gz();
  EXPECT_TRUE(has_all_labels(open()));
  for (std::size_t i = 0; i < 4; ++i) std::filesystem::remove(gz(i));
  EXPECT_TRUE(has_all_labels(open())) << "from what was extracted";
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(LabelTableFileSetTest, ExtractsTheTableAsItIs) {
  put_all_gz();
  static_cast<void>(open());
  EXPECT_EQ(test::read(extracted(1)), contents_[1]);
}

TEST_F(LabelTableFileSetTest, ItsImagesAreThoseOfTheFiles) {
  put_all_gz();
  const Dataset dataset = open();
  EXPECT_TRUE(std::equal(dataset.test.images.begin(), dataset.test.images.end(),
                         contents_[2].begin() + 16, contents_[2].end()));
}

TEST_F(LabelTableFileSetTest, ItsIdentityIsTheHashOfItsFourFiles) {
  put_all_gz();
  Sha256 identity;
  for (const Bytes& bytes : contents_) identity.update(std::as_bytes(std::span(bytes)));
  EXPECT_EQ(open().checksum, identity.hex());
}

TEST_F(LabelTableFileSetTest, RefusesATableWithALabelThatIsNoClass) {
  put_all_gz();
  set_.classes = 9;
  const std::system_error error = error_of_open();
  EXPECT_EQ(error.code(), DataError::kBadLabel);
  EXPECT_NE(
      std::string(error.what()).find("train-labels: expected labels 0 to 8, found 9 in row 9"),
      std::string::npos)
      << error.what();
}

// The data set's documentation gives 60 000 rows each.
TEST(Qmnist, ItsFilesHaveTheSizesOfTheirFormat) {
  for (const SetFile& file : qmnist().files) {
    EXPECT_EQ(file.size_bytes(),
              file.kind == FileKind::kImages ? 16U + 60000U * 784U : 12U + 60000U * 8U * 4U)
        << file.name;
  }
}

}  // namespace
}  // namespace disttf::data
