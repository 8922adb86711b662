// Sets with label tables, like QMNIST's. The test creates the files in the same format.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "data/qmnist.h"
#include "tests/data/file_set_fixture.h"

namespace disttf::data {
namespace {

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
