// Sparse text: rows become dense with the columns of all files; the error messages.
#include "data/own/libsvm.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/data/scratch.h"

namespace disttf::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct DenseRows {
  std::vector<std::string> columns;
  std::vector<float> numbers{};
  std::vector<std::string> labels{};
  std::vector<float> targets{};
  std::size_t blocks = 0;
};

class Libsvm : public testing::Test {
 protected:
  std::filesystem::path put(std::string_view text, const std::string& name = "t.svm") {
    const auto path = scratch_.path() / name;
    test::write(path, test::bytes_of(text));
    return path;
  }
  static LibsvmIndices indices_of(const std::filesystem::path& path,
                                  const LibsvmOptions& options = {}) {
    return libsvm_indices(path, options, {});
  }
  static DenseRows all(const std::filesystem::path& path, const LibsvmOptions& options,
                       const LibsvmIndices& indices, std::size_t piece_bytes = 1U << 20U,
                       std::size_t block_numbers = 1U << 20U) {
    const auto source = open_libsvm(path, options, indices, piece_bytes, block_numbers);
    DenseRows rows{.columns = source->columns()};
    RowBlock block;
    while (source->next(block)) {
      EXPECT_EQ(block.numbers.size(), block.rows() * source->columns().size());
      EXPECT_TRUE(block.numbers.size() <= block_numbers || block.rows() == 1);
      ++rows.blocks;
      rows.numbers.insert(rows.numbers.end(), block.numbers.begin(), block.numbers.end());
      rows.targets.insert(rows.targets.end(), block.targets.begin(), block.targets.end());
      for (const std::uint32_t label : block.labels) {
        rows.labels.push_back(block.words.at(label));
      }
    }
    return rows;
  }
  DenseRows read(std::string_view text, const LibsvmOptions& options = {}) {
    const auto path = put(text);
    return all(path, options, indices_of(path, options));
  }
  std::string refusal(std::string_view text, const LibsvmOptions& options = {}) {
    return test::refusal_of([&] { static_cast<void>(read(text, options)); }, scratch_.path());
  }
  test::ScratchDirectory scratch_;
};

TEST_F(Libsvm, HasDenseRowsWithAColumnForEachIndex) {
  const DenseRows rows = read("+1 1:0.5 4:-2\n-1 2:1e-2\n+1\n");
  EXPECT_THAT(rows.columns, ElementsAre("1", "2", "3", "4"));
  EXPECT_THAT(rows.numbers, ElementsAre(0.5F, 0, 0, -2, 0, 0.01F, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(rows.labels, ElementsAre("1", "-1", "1"));
  EXPECT_THAT(rows.targets, IsEmpty());
}

TEST_F(Libsvm, MayCountFromZero) {
  const DenseRows rows = read("0 0:7\n1 2:8\n");
  EXPECT_THAT(rows.columns, ElementsAre("0", "1", "2"));
  EXPECT_THAT(rows.numbers, ElementsAre(7, 0, 0, 0, 0, 8));
}

TEST_F(Libsvm, LeavesCommentsBlanksAndEmptyLinesOut) {
  const DenseRows rows =
      read("\xEF\xBB\xBF# all \"of it\n\n  1\t1:2 \t2:3  # a:b c\r\n \r\n2 1:4#5:6\n3 2:1");
  EXPECT_THAT(rows.numbers, ElementsAre(2, 3, 4, 0, 0, 1));
  EXPECT_THAT(rows.labels, ElementsAre("1", "2", "3"));
  EXPECT_THAT(read("made by hand\n1 1:2\n", {.skipped_lines = 1}).numbers, ElementsAre(2));
}

TEST_F(Libsvm, HasOneClassHoweverANumberIsWritten) {
  EXPECT_THAT(read("+1 1:1\n1 1:1\n1.0 1:1\n-0.0 1:1\n2.50 1:1\n16777217 1:1\n").labels,
              ElementsAre("1", "1", "1", "0", "2.5", "16777217"));
}

TEST_F(Libsvm, MayHaveLabelsThatAreNumbers) {
  const DenseRows rows = read("1.5 1:1\n-2 1:1\n", {.label_is_number = true});
  EXPECT_THAT(rows.targets, ElementsAre(1.5F, -2));
  EXPECT_THAT(rows.labels, IsEmpty());
}

TEST_F(Libsvm, HasTheColumnsOfAllFilesOfASet) {
  const auto train = put("1 1:1\n", "train.svm");
  const auto test = put("1 0:5 3:1\n2\n", "test.svm");
  LibsvmIndices indices = indices_of(train);
  indices.add(indices_of(test));
  EXPECT_EQ(indices.columns(), 4U);
  EXPECT_EQ(indices.rows, 3U);
  EXPECT_THAT(all(train, {}, indices).numbers, ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(all(test, {}, indices).numbers, ElementsAre(5, 0, 0, 1, 0, 0, 0, 0));
}

TEST_F(Libsvm, IsTheSameInPiecesAndBlocksOfAnySize) {
  std::string text;
  for (int row = 0; row < 200; ++row) {
    text += std::to_string(row % 3) + " " + std::to_string(row % 7 + 1) + ":" +
            std::to_string(row) + ".25 9:1\n";
  }
  const auto path = put(text);
  const LibsvmIndices indices = indices_of(path);
  const DenseRows whole = all(path, {}, indices);
  EXPECT_EQ(whole.blocks, 1U);
  EXPECT_EQ(whole.labels.size(), 200U);
  for (const std::size_t piece_bytes : {64U, 1000U}) {
    for (const std::size_t block_numbers : {1U, 30U, 1000U}) {
      const DenseRows cut =
          all(path, {.skipped_lines = 0, .threads = 3}, indices, piece_bytes, block_numbers);
      EXPECT_GT(cut.blocks, 1U);
      EXPECT_EQ(cut.numbers, whole.numbers);
      EXPECT_EQ(cut.labels, whole.labels);
    }
  }
}

TEST_F(Libsvm, TellsWhatItWillTake) {
  const auto path = put("1 1:1 10:1\n2 1:1\n");
  EXPECT_EQ(open_libsvm(path, {}, indices_of(path))->converted_bytes(), 2U * 10U * 4U);
}

TEST_F(Libsvm, RefusesWhatIsNoRow) {
  EXPECT_EQ(refusal("1 1:1\n1,3 1:1\n"),
            "t.svm, line 2: \"1,3\" is a list of labels; one label a row is allowed");
  EXPECT_EQ(refusal("\n# qid:1\n1 qid:7 1:1\n"),
            "t.svm, line 3: \"qid:7\" is a query identifier; ranking is not supported, remove it");
  EXPECT_EQ(refusal("1:1 2:1\n"),
            "t.svm, line 1: the label is missing: the line begins with \"1:1\"");
  EXPECT_EQ(refusal("yes 1:1\n"), "t.svm, line 1: the label \"yes\" is not a number of 32 bits");
  EXPECT_EQ(refusal("99999999999 1:1\nnan 1:1\n"),
            "t.svm, line 2: the label \"nan\" is not a number of 32 bits");
  EXPECT_EQ(refusal("1e39 1:1\n", {.label_is_number = true}),
            "t.svm, line 1: the label \"1e39\" is not a number of 32 bits");
  EXPECT_EQ(refusal("1 2:1 2:3\n"),
            "t.svm, line 1: index 2 follows 2; indices must ascend, each once");
  for (const char* const word : {"5", ":5", "a:5", "-1:5", "1x:5", "1 :5"}) {
    EXPECT_THAT(refusal("1 " + std::string(word) + "\n"),
                testing::HasSubstr(" is not INDEX:NUMBER"))
        << word;
  }
  for (const char* const number : {"", "x", "nan", "inf", "1e39", "1:2", "1,5"}) {
    EXPECT_EQ(refusal("1 3:" + std::string(number) + "\n"),
              "t.svm, line 1: index 3: \"" + std::string(number) + "\" is not a number of 32 bits");
  }
}

TEST_F(Libsvm, RefusesIndicesThatAreTooLarge) {
  EXPECT_EQ(read("1 65536:1\n").columns.size(), 65536U);
  for (const char* const index : {"65537", "99999999999999999999"}) {
    EXPECT_EQ(refusal("1 " + std::string(index) + ":1\n"),
              "t.svm, line 1: index " + std::string(index) +
                  " is above 65536, the largest allowed index: every row would have that "
                  "many numbers");
  }
}

TEST_F(Libsvm, RefusesFilesWithoutRowsOrNumbers) {
  EXPECT_EQ(refusal(""), "t.svm: there are no rows in it");
  EXPECT_EQ(refusal("# nothing\n"), "t.svm: there are no rows in it");
  EXPECT_EQ(refusal("1\n2\n"), "t.svm: there is no number in it beside the labels");
}

// The indices describe the earlier contents; nothing may be written past the end of a row.
TEST_F(Libsvm, RefusesAFileThatHasGrown) {
  const LibsvmIndices indices = indices_of(put("1 1:1 2:1\n"));
  for (const char* const text : {"1 1:1 3:1\n", "1 0:1 2:1\n"}) {
    const auto path = put(text);
    EXPECT_EQ(test::refusal_of([&] { static_cast<void>(all(path, {}, indices)); }, scratch_.path()),
              "t.svm: it was changed while it was read");
  }
}

TEST_F(Libsvm, StopsWhereProgressThrows) {
  const auto path = put("1 1:1\n");
  EXPECT_THROW(static_cast<void>(libsvm_indices(
                   path, {}, [](std::uint64_t) { throw std::runtime_error("stopped"); })),
               std::runtime_error);
}

}  // namespace
}  // namespace disttf::data
