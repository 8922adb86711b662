// Text files in pieces of whole lines.
#include "data/own/text_pieces.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/data/scratch.h"

namespace disttf::data {
namespace {

namespace fs = std::filesystem;
using Quotes = TextPieces::Quotes;

class TextPiecesTest : public testing::Test {
 protected:
  [[nodiscard]] fs::path file() const { return scratch_.path() / "table"; }
  void append(const std::string& text) const {
    std::ofstream(file(), std::ios::app | std::ios::binary) << text;
  }
  static std::vector<std::string> rest_of(TextPieces& pieces) {
    std::vector<std::string> texts;
    TextPiece piece;
    while (pieces.next(piece)) {
      texts.push_back(piece.text);
    }
    return texts;
  }

  test::ScratchDirectory scratch_;
};

// The first piece combines two reads, because the constructor reads the file's beginning.
TEST_F(TextPiecesTest, EndWithALineAndKnowWhichTheyBeginWith) {
  append("one\ntwo\nthree\nfour\nfive");
  TextPieces pieces(file(), Quotes::kMeanNothing, 0, 8);
  TextPiece piece;
  ASSERT_TRUE(pieces.next(piece));
  EXPECT_EQ(piece.text, "one\ntwo\nthree\n");
  EXPECT_EQ(piece.first_line, 1U);
  ASSERT_TRUE(pieces.next(piece));
  EXPECT_EQ(piece.text, "four\n");
  EXPECT_EQ(piece.first_line, 4U);
  ASSERT_TRUE(pieces.next(piece));
  EXPECT_EQ(piece.text, "five");
  EXPECT_FALSE(pieces.next(piece));
}

TEST_F(TextPiecesTest, OfASmallFileTakeNoMoreMemoryThanItHas) {
  append("one\ntwo\n");
  TextPieces pieces(file(), Quotes::kMeanNothing);
  TextPiece piece;
  ASSERT_TRUE(pieces.next(piece));
  EXPECT_EQ(piece.text, "one\ntwo\n");
  EXPECT_LT(piece.text.capacity(), 64U * 1024);
}

TEST_F(TextPiecesTest, AFileThatGrowsMeanwhileIsReadToItsEnd) {
  append("one\n");
  TextPieces pieces(file(), Quotes::kMeanNothing);
  append("two\n");
  std::string more;
  while (more.size() < 100'000) {
    more += "a line of some length\n";
  }
  append(more);
  std::string all;
  for (const std::string& text : rest_of(pieces)) {
    EXPECT_TRUE(text.ends_with('\n'));
    all += text;
  }
  EXPECT_TRUE(all == "one\ntwo\n" + more) << all.size();
}

}  // namespace
}  // namespace disttf::data
