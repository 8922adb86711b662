// Tables as text: detection of their form, and the error messages.
#include "data/own/csv.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "data/own/csv_cells.h"
#include "data/own/text_pieces.h"
#include "tests/data/scratch.h"

namespace disttf::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// All rows of a file.
struct Table {
  std::vector<std::string> columns;
  std::string label_column;
  std::vector<float> numbers{};
  std::vector<std::string> labels{};
  std::size_t blocks = 0;
};

class Csv : public testing::Test {
 protected:
  Table read(std::string_view text, const CsvOptions& options = {}, std::size_t piece = 1U << 20U) {
    const auto path = scratch_.path() / "t.csv";
    test::write(path, test::bytes_of(text));
    const auto source = open_csv(path, options, piece);
    Table table{.columns = source->columns(), .label_column = source->label_column()};
    RowBlock block;
    while (source->next(block)) {
      EXPECT_GT(block.rows(), 0U);
      ++table.blocks;
      table.numbers.insert(table.numbers.end(), block.numbers.begin(), block.numbers.end());
      for (const std::uint32_t label : block.labels) {
        table.labels.push_back(block.words.at(label));
      }
    }
    EXPECT_EQ(source->bytes_read(), text.size());
    return table;
  }
  // Returns the error message, without the folder's path.
  std::string refusal(std::string_view text, const CsvOptions& options = {},
                      std::size_t piece = 1U << 20U) {
    return test::refusal_of([&] { static_cast<void>(read(text, options, piece)); },
                            scratch_.path());
  }

  test::ScratchDirectory scratch_;
};

TEST_F(Csv, HasNamesNumbersAndLabels) {
  const Table table = read("length,width,species\n5.1,3.5,setosa\n6.2,2.5e-1,\"virginica\"\n");
  EXPECT_THAT(table.columns, ElementsAre("length", "width"));
  EXPECT_EQ(table.label_column, "species");
  EXPECT_THAT(table.numbers, ElementsAre(5.1F, 3.5F, 6.2F, 0.25F));
  EXPECT_THAT(table.labels, ElementsAre("setosa", "virginica"));
}

TEST_F(Csv, WithoutALineOfNamesNumbersItsColumns) {
  const Table table = read("1,2,0\n3,4,1\n");
  EXPECT_THAT(table.columns, ElementsAre("1", "2"));
  EXPECT_EQ(table.label_column, "3");
  EXPECT_THAT(table.labels, ElementsAre("0", "1"));
  EXPECT_THAT(read("1,2,yes\n3,4,no\n").labels, ElementsAre("yes", "no"));
}

TEST_F(Csv, TellsNamesByTheNumbersBelowThem) {
  EXPECT_THAT(read("0,1,target\n3,4,1\n").columns, ElementsAre("0", "1"));
  EXPECT_THAT(read("a,b,target\n3,4,1\n").columns, ElementsAre("a", "b"));
}

TEST_F(Csv, FindsTheLabelByItsName) {
  const Table table = read("Class,a,b\nx,1,2\n");
  EXPECT_EQ(table.label_column, "Class");
  EXPECT_THAT(table.columns, ElementsAre("a", "b"));
  EXPECT_EQ(read("a,TARGET,b\n1,x,2\n").label_column, "TARGET");
}

TEST_F(Csv, TakesTheLabelThatIsAskedForByNameOrNumber) {
  EXPECT_EQ(read("a,b,label\n1,2,3\n", {.label_column = "b"}).label_column, "b");
  EXPECT_EQ(read("a,b,label\n1,2,3\n", {.label_column = "1"}).label_column, "a");
  EXPECT_EQ(refusal("a,b,label\n1,2,3\n", {.label_column = "c"}),
            "--label_column: t.csv has no column \"c\"; a name of its first line or a number from "
            "1 to 3 is allowed");
  EXPECT_EQ(refusal("1,2\n", {.label_column = "3"}),
            "--label_column: t.csv has no column \"3\"; a name of its first line or a number from "
            "1 to 2 is allowed");
}

TEST_F(Csv, LeavesIgnoredColumnsAndSkippedLinesOut) {
  const Table table = read("made by hand\nid,a,note,label\n7,1,hello,x\n8,2,,y\n",
                           {.ignored_columns = {"id", "3"}, .skipped_lines = 1});
  EXPECT_THAT(table.columns, ElementsAre("a"));
  EXPECT_THAT(table.numbers, ElementsAre(1, 2));
  EXPECT_EQ(read("a,b,c\n1,x,2\n", {.ignored_columns = {"c"}}).label_column, "b");
}

TEST_F(Csv, MaySeparateCellsOtherwise) {
  EXPECT_THAT(read("a;b;label\n1;2;x\n").numbers, ElementsAre(1, 2));
  EXPECT_THAT(read("a\tb\tlabel\n1\t2\tx\n").numbers, ElementsAre(1, 2));
  EXPECT_THAT(read("a|b|label\n1|2|x, y\n").labels, ElementsAre("x, y"));
}

TEST_F(Csv, TakesBlanksEmptyLinesAndOtherLineEnds) {
  const Table table = read("\xEF\xBB\xBF\n a , b ,label\r\n\r\n 1 ,\t2 , x \r\n\n3,4,y");
  EXPECT_THAT(table.columns, ElementsAre("a", "b"));
  EXPECT_THAT(table.numbers, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(table.labels, ElementsAre("x", "y"));
}

TEST_F(Csv, RefusesALineOfTabsWhereTheseSeparateCells) {
  EXPECT_EQ(refusal("a\tb\tlabel\n1\t2\tx\n\t\t\n3\t4\ty\n"),
            "t.csv, line 3, column 1 (a): the cell is empty; a number is expected");
  EXPECT_EQ(refusal("a\tb\tlabel\n1\t2\tx\n \t\t\r\n"),
            "t.csv, line 3, column 1 (a): the cell is empty; a number is expected");
  EXPECT_EQ(refusal("\n\t\t\n\na\tb\tlabel\n1\t2\tx\n"), "t.csv, line 2: all its cells are empty");
  EXPECT_THAT(read("\t\na,b,label\n1,2,x\n\t\t\n").numbers, ElementsAre(1, 2));
  EXPECT_THAT(read("\n \na\tlabel\n\n1\tx\n \r\n\n").numbers, ElementsAre(1));
}

TEST_F(Csv, HasQuotesAsRfc4180) {
  const Table table = read("a,label\n\"1\",\"two\nlines, and \"\"quotes\"\"\"\n2,\"\"\"\"\n");
  EXPECT_THAT(table.numbers, ElementsAre(1, 2));
  EXPECT_THAT(table.labels, ElementsAre("two\nlines, and \"quotes\"", "\""));
  EXPECT_EQ(refusal("a,label\n1,\"x\n"),
            "t.csv, line 2, column 2 (label): a quote is not closed at the cell's end");
  EXPECT_EQ(refusal("a,label\n1,\"x\"y\n"),
            "t.csv, line 2, column 2 (label): a quote is not closed at the cell's end");
}

TEST_F(Csv, MayHaveQuotesInItsNames) {
  const Table table = read("\"x\n(mm)\",\"a, b\",label\n1,2,x\n");
  EXPECT_THAT(table.columns, ElementsAre("x\n(mm)", "a, b"));
  EXPECT_THAT(table.numbers, ElementsAre(1, 2));
  EXPECT_THAT(read("\"Length, mm\";\"Width, mm\";\"name, latin\"\n1;2;x\n").numbers,
              ElementsAre(1, 2));
}

TEST_F(Csv, LeavesTheLabelAloneThatIsIgnored) {
  EXPECT_EQ(read("label,x,species\na,1,b\n", {.ignored_columns = {"label"}}).label_column,
            "species");
  EXPECT_EQ(refusal("x,y,label\n1,2,a\n", {.label_column = "y", .ignored_columns = {"y"}}),
            "--label_column: \"y\" is one of --ignore_columns as well");
  EXPECT_EQ(refusal("x,y\n1,2\n", {.ignored_columns = {"x", "y"}}),
            "--ignore_columns: all columns of t.csv are named; a label and a column of numbers are "
            "needed");
}

TEST_F(Csv, KnowsALongNameAsItIs) {
  const std::string name(100, 'n');
  EXPECT_EQ(read(name + ",x,y\na,1,2\n", {.label_column = name}).label_column, name);
}

TEST_F(Csv, SkipsLinesThatAreNoTable) {
  std::string text;
  for (int line = 0; line < 50; ++line) {
    text += "a 6\" pipe, and more words\n";
  }
  text += "a,label\n1,x\nwrong,y\n";
  EXPECT_EQ(refusal(text, {.skipped_lines = 50}, 16),
            "t.csv, line 53, column 1 (a): \"wrong\" is not a number of 32 bits");
}

TEST_F(Csv, IsTheSameInAnyPiecesAndThreads) {
  std::string text = "a,b,label\n";
  std::vector<float> numbers;
  for (int row = 0; row < 500; ++row) {
    numbers.push_back(static_cast<float>(row));
    numbers.push_back(static_cast<float>(row) / 8);
    text += std::to_string(row) + "," + std::to_string(static_cast<double>(row) / 8) + ",\"c\n" +
            std::to_string(row % 7) + "\"\n";
  }
  const Table whole = read(text);
  EXPECT_EQ(whole.blocks, 1U);
  EXPECT_EQ(whole.numbers, numbers);
  for (const std::size_t piece : {1U, 7U, 64U, 1000U}) {
    for (const std::size_t threads : {1U, 3U}) {
      const Table table = read(text, {.threads = threads}, piece);
      EXPECT_EQ(table.numbers, whole.numbers) << piece;
      EXPECT_EQ(table.labels, whole.labels) << piece;
    }
  }
  EXPECT_GT(read(text, {}, 1000).blocks, 5U);
}

TEST_F(Csv, NamesThePlaceOfWhatIsNoNumber) {
  EXPECT_EQ(refusal("a,b,label\n1,2,x\n\n3,4 cm,y\n"),
            "t.csv, line 4, column 2 (b): \"4 cm\" is not a number of 32 bits");
  EXPECT_EQ(refusal("1,2,x\n3,,y\n"),
            "t.csv, line 2, column 2: the cell is empty; a number is expected");
  EXPECT_EQ(refusal("a,label\n1,x\n2,\n"), "t.csv, line 3, column 2 (label): the label is missing");
  for (const char* const cell : {"nan", "inf", "-inf", "1e39", "0x10", "1,5", "1_000", "--1"}) {
    EXPECT_THAT(refusal("a;label\n1;x\n" + std::string(cell) + ";x\n"),
                testing::HasSubstr("line 3, column 1 (a): \"" + std::string(cell)))
        << cell;
  }
}

TEST_F(Csv, CountsLinesOverPieces) {
  std::string text = "a,label\n";
  for (int row = 0; row < 300; ++row) {
    text += "1,\"x\ny\"\n";
  }
  text += "wrong,x\n";
  EXPECT_EQ(refusal(text, {.threads = 2}, 64),
            "t.csv, line 602, column 1 (a): \"wrong\" is not a number of 32 bits");
}

TEST_F(Csv, RefusesRaggedLines) {
  EXPECT_EQ(refusal("a,b,label\n1,2,x\n1,x\n"),
            "t.csv, line 3: 2 cells where the first line has 3");
  EXPECT_EQ(refusal("a,b,label\n1,2,x,4,5\n"), "t.csv, line 2: 5 cells where the first line has 3");
}

// pandas writes such a line for frames without column names.
TEST_F(Csv, KnowsNamesThatAreNumbers) {
  EXPECT_THAT(read("0,1,label\n3,4,red\n5,6,green\n").columns, ElementsAre("0", "1"));
  EXPECT_EQ(read("0,1,label\n3,4,red\n5,6,green\n").label_column, "label");
  EXPECT_EQ(read("Class,2019,2020\nred,4,5\ngreen,6,7\n").label_column, "Class");
  EXPECT_EQ(read("0,1,outcome\n3,4,red\n5,6,green\n").label_column, "outcome");
  EXPECT_THAT(read("0,1,2\n3,4,0\n5,6,1\n").columns, ElementsAre("0", "1"));
  EXPECT_THAT(read("\"0\",\"7\",\"2\"\n3,4,0\n5,6,1\n").columns, ElementsAre("0", "7"));
}

TEST_F(Csv, FindsNamesByTheColumnsThatAreAskedFor) {
  const std::string text = "2019,2020,outcome\n3,4,red\n5,6,green\n";
  EXPECT_THAT(read(text).columns, ElementsAre("1", "2")) << "nothing says that these are names";
  EXPECT_THAT(read(text, {.label_column = "outcome"}).columns, ElementsAre("2019", "2020"));
  EXPECT_THAT(read(text, {.ignored_columns = {"2019"}}).columns, ElementsAre("2020"));
  EXPECT_THAT(read("1,2,3\n4,5,6\n", {.label_column = "2"}).columns, ElementsAre("1", "3"))
      << "a number of a column is no name of one";
}

TEST_F(Csv, TakesARowForARowWhoseLabelOthersHaveToo) {
  EXPECT_THAT(read("0,1,target\n3,4,background\n5,6,target\n").labels,
              ElementsAre("target", "background", "target"));
  EXPECT_THAT(read("0,yes\n1,no\n2,yes\n").labels, ElementsAre("yes", "no", "yes"));
  EXPECT_THAT(read("0,1\n1,0\n").labels, ElementsAre("1", "0"));
}

TEST_F(Csv, CallsColumnsWithoutANameAndSecondOnesAsPandasDoes) {
  EXPECT_THAT(read(",x,y,label\n0,1,2,a\n1,3,4,b\n").columns, ElementsAre("Unnamed: 0", "x", "y"));
  EXPECT_THAT(read("x,x,x.1,x,label\n0,1,2,3,a\n").columns, ElementsAre("x", "x.2", "x.1", "x.3"));
  EXPECT_EQ(read(",x,y,label\n0,1,2,a\n", {.ignored_columns = {"Unnamed: 0"}}).columns.size(), 2U);
}

TEST_F(Csv, ReadsNamesThatAreNotUtf8AsWindows1252) {
  EXPECT_THAT(read("Gr\xF6\xDF"
                   "e,x,label\n1,2,a\n")
                  .columns,
              ElementsAre("Gr\xC3\xB6\xC3\x9F"
                          "e",
                          "x"));
}

TEST_F(Csv, NamesTheEncodingsThatItDoesNotRead) {
  const auto wide = [](std::string_view text, std::size_t bytes, bool is_big, std::string mark) {
    for (const char c : text) {
      const std::string zeros(bytes - 1, '\0');
      mark += is_big ? zeros + c : c + zeros;
    }
    return mark;
  };
  const std::string table = "x,y,label\n1,2,a\n3,4,b\n";
  using namespace std::string_literals;
  EXPECT_THAT(refusal(wide(table, 2, false, "\xFF\xFE")), testing::HasSubstr("it is UTF-16 text"));
  EXPECT_THAT(refusal(wide(table, 2, true, "\xFE\xFF")), testing::HasSubstr("it is UTF-16 text"));
  EXPECT_THAT(refusal(wide(table, 4, false, "\xFF\xFE\0\0"s)),
              testing::HasSubstr("it is UTF-32 text"));
  EXPECT_THAT(refusal(wide(table, 4, true, "\0\0\xFE\xFF"s)),
              testing::HasSubstr("it is UTF-32 text"));
  EXPECT_THAT(refusal(wide(table, 2, false, "")), testing::HasSubstr("it is UTF-16LE text"));
  EXPECT_THAT(refusal(wide(table, 2, true, "")), testing::HasSubstr("it is UTF-16BE text"));
  EXPECT_THAT(refusal(wide(table, 4, false, "")), testing::HasSubstr("it is UTF-32LE text"));
  EXPECT_THAT(refusal(wide(table, 4, true, "")), testing::HasSubstr("it is UTF-32BE text"));
  EXPECT_THAT(refusal("x,y,label\n1,2,a\n3\0,4,b\n"s),
              testing::HasSubstr("it is no text: byte 18"));
  EXPECT_THAT(refusal("PK\3\4 a workbook"), testing::HasSubstr("it is a ZIP archive"));
  EXPECT_THAT(refusal("\x1F\x8B\x08"), testing::HasSubstr("it is compressed by gzip"));
}

TEST_F(Csv, NamesLinesThatEndInCrAlone) {
  EXPECT_THAT(refusal("x,y,label\r1,2,a\r3,4,b\r"),
              testing::HasSubstr("its lines end in CR alone"));
  EXPECT_THAT(
      refusal("x,y,label\n1,2,a\r3,4,b\n"),
      testing::HasSubstr("line 2: 5 cells where the first line has 3; it contains a CR alone"));
  EXPECT_THAT(read("x,label\r\n1,a\n2,b\r\n\n\r\n3,c\r\r\n").labels, ElementsAre("a", "b", "c"));
}

TEST_F(Csv, RefusesLabelsThatCannotBeNames) {
  std::string text = "x,label\n";
  while (text.size() < 5000) text += "1,a\n";
  using namespace std::string_literals;
  EXPECT_THAT(
      refusal(text + "1,b\0c\n"s),
      testing::HasSubstr("column 2 (label): the label \"b\\x00c\" has a byte that is zero"));
  EXPECT_THAT(refusal(text + "1," + std::string(2000, 'l') + "\n"),
              testing::HasSubstr("the label has 2000 bytes; at most 1024 are allowed"));
}

TEST_F(Csv, RefusesFilesWithoutATable) {
  EXPECT_EQ(refusal(""), "t.csv: the file is empty");
  EXPECT_EQ(refusal("\n \n"), "t.csv: there are no lines in it");
  EXPECT_EQ(refusal("a,b\n1,2\n", {.skipped_lines = 9}),
            "t.csv: there are no lines after the skipped ones");
  EXPECT_EQ(refusal("label\nx\n"), "t.csv: it has no column of numbers beside the label \"label\"");
  EXPECT_THAT(read("a,label\n").numbers, IsEmpty());
}

TEST_F(Csv, RefusesALabelOfThousandsOfValues) {
  std::string text = "a,price\n";
  for (int row = 0; row < 5000; ++row) {
    text += "1," + std::to_string(row) + "\n";
  }
  EXPECT_EQ(refusal(text),
            "t.csv: column \"price\" has more than 4096 values, which is too many for classes; "
            "--label_column selects another column, and --label_type number predicts numbers");
}

TEST(ReadNumber, TakesWhatTablesHave) {
  const auto number = [](std::string_view text) {
    float value = -1;
    return read_number(text, value) ? value : 99.0F;
  };
  EXPECT_EQ(number("1"), 1);
  EXPECT_EQ(number("+1.5"), 1.5F);
  EXPECT_EQ(number("-.5e1"), -5);
  EXPECT_EQ(number("1e-60"), 0);
  EXPECT_EQ(number("0.1"), 0.1F);
  EXPECT_EQ(number("16777217"), 16777216);
  EXPECT_EQ(number(""), 99);
  EXPECT_EQ(number("1 2"), 99);
  EXPECT_EQ(number("4e38"), 99);
  EXPECT_EQ(number("+-5"), 99);
}

// Compares the fast path with from_chars.
TEST(NextNumber, IsTheNearestFloat) {
  for (const char* const sign : {"", "-"}) {
    for (std::uint32_t digits = 1; digits < 99'999'999; digits = digits * 3 + 1) {
      for (std::size_t decimals = 0; decimals < 12; ++decimals) {
        std::string text = std::to_string(digits);
        text.insert(0, text.size() <= decimals ? decimals + 1 - text.size() : 0, '0');
        text.insert(text.size() - decimals, ".");
        text.insert(0, sign);
        const std::string line = text + "\n";
        CsvCells cells(line, ',');
        float quick = 0;
        float slow = 0;
        ASSERT_TRUE(read_number(text, slow)) << text;
        if (cells.next_number(quick)) {
          ASSERT_EQ(quick, slow) << text;
          ASSERT_TRUE(cells.line_ended() && cells.at_end());
        } else {
          ASSERT_TRUE(digits >= 1U << 24U || decimals > 10) << text;
          ASSERT_EQ(cells.rest(), line);
        }
      }
    }
  }
}

TEST(NextNumber, LeavesTheRestToOthers) {
  for (const char* const text :
       {"", ".", "-", "-.", "1e5", " 1", "1 ", "\"1\"", "1.2.3", "+1", "x", "12"}) {
    const std::string line = std::string(text) + (std::string_view(text) == "12" ? "" : ",");
    CsvCells cells(line, ',');
    float number = 0;
    EXPECT_FALSE(cells.next_number(number)) << text;
    EXPECT_EQ(cells.rest(), line);
  }
}

// Text files in pieces of whole lines.

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
