// Records read back from files: merged, bounded, and what is wrong with them.
#include "run/monitor/shell/telemetry_files.h"

#include <gmock/gmock.h>

#include <fstream>
#include <stdexcept>

#include "run/monitor/core/record.h"
#include "run/monitor/core/record_line.h"
#include "tests/data/scratch.h"
#include "tests/support/thrown.h"

namespace disttf::roles {
namespace {

using ViewJson = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::string step_line(double time, int step) {
  return R"({"kind":"step","time":)" + std::to_string(time) + R"(,"step":)" + std::to_string(step) +
         R"(,"loss":0.5})" + "\n";
}

class RecordFilesTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(directory() / "records");
    std::ofstream(directory() / "records" / name, std::ios::binary) << text;
  }
  std::filesystem::path directory() const { return scratch_.path() / "run"; }
  // The steps, in the order in which they come.
  std::vector<int> steps(BadLines bad_lines = BadLines::kRefuse) {
    std::vector<int> all;
    reading_ = RecordFiles(directory()).read(bad_lines, [&all](const ViewJson& record) {
      all.push_back(record.at("step"));
    });
    return all;
  }
  std::string refusal() {
    return sentence_of([&] { return steps(); }, "");
  }

  data::test::ScratchDirectory scratch_;
  RecordReading reading_;
};

TEST_F(RecordFilesTest, AreMergedByTime) {
  write("b.jsonl", step_line(1, 10) + step_line(4, 40) + step_line(5, 50));
  write("a.jsonl", step_line(2, 20) + step_line(3, 30) + step_line(6, 60));
  write("none.txt", "no record");
  EXPECT_THAT(steps(), ElementsAre(10, 20, 30, 40, 50, 60));
  EXPECT_EQ(reading_.records, 6U);
}

TEST_F(RecordFilesTest, AreReadInPieces) {
  std::string text;
  std::vector<int> wanted;
  for (int each = 0; each < 5000; ++each) {
    text += step_line(each, each);
    wanted.push_back(each);
  }
  write("a.jsonl", text);
  EXPECT_EQ(steps(), wanted);
}

class GrowingRecordFiles : public RecordFilesTest {
 protected:
  void append(const std::string& name, const std::string& text) {
    std::ofstream(directory() / "records" / name, std::ios::binary | std::ios::app) << text;
  }
  std::vector<int> more(BadLines bad_lines = BadLines::kRefuse) {
    std::vector<int> all;
    reading_ = files_.read(bad_lines,
                           [&all](const ViewJson& record) { all.push_back(record.at("step")); });
    return all;
  }

  RecordFiles files_{directory()};
};

TEST_F(GrowingRecordFiles, AreReadOn) {
  write("a.jsonl", step_line(1, 10));
  EXPECT_THAT(more(), ElementsAre(10));
  EXPECT_THAT(more(), ElementsAre());
  const std::string next = step_line(2, 20);
  append("a.jsonl", next.substr(0, 9));
  EXPECT_THAT(more(), ElementsAre()) << "a line without its end";
  append("a.jsonl", next.substr(9) + step_line(5, 50));
  append("b.jsonl", step_line(3, 30) + step_line(4, 40));
  EXPECT_THAT(more(), ElementsAre(20, 30, 40, 50)) << "and a file that was not there before";
  EXPECT_EQ(reading_.records, 4U);
}

TEST_F(GrowingRecordFiles, ALongLineIsLeftOutHoweverItComes) {
  write("a.jsonl", std::string(kMaxRecordBytes + 1, 'x'));
  EXPECT_THAT(more(), ElementsAre());
  append("a.jsonl", "\"}\n" + step_line(2, 20));
  EXPECT_THAT(more(), ElementsAre(20));
  EXPECT_EQ(reading_.long_lines, 1U);
}

TEST_F(GrowingRecordFiles, NothingIsLostByAFileThatCannotBeRead) {
  write("a.jsonl", step_line(1, 10));
  write("b.jsonl", "nonsense\n" + step_line(2, 20));
  EXPECT_THROW(more(), std::invalid_argument);
  EXPECT_THAT(more(BadLines::kSkip), ElementsAre(10, 20));
}

TEST_F(RecordFilesTest, AreNoneWhereThereIsNoFile) {
  std::filesystem::create_directories(directory());
  EXPECT_THAT(steps(), ElementsAre());
}

TEST_F(RecordFilesTest, LastLineWithoutAnEndIsNoRecord) {
  write("a.jsonl", step_line(1, 10) + step_line(2, 20).substr(0, 30));
  write("b.jsonl", step_line(3, 30).substr(0, step_line(3, 30).size() - 1));
  EXPECT_THAT(steps(), ElementsAre(10));
}

TEST_F(RecordFilesTest, LongLinesAreCountedAndLeftOut) {
  const std::string end = step_line(2, 20);
  const auto padded = [](std::size_t size) {
    std::string line = R"({"kind":"step","time":1,"step":7,"x":")";
    return line + std::string(size - line.size() - 2, 'x') + "\"}\n";
  };
  write("a.jsonl", padded(kMaxRecordBytes) + padded(kMaxRecordBytes + 1) + padded(200'000) + end);
  EXPECT_THAT(steps(), ElementsAre(7, 20));
  EXPECT_EQ(reading_.long_lines, 2U);
}

TEST_F(RecordFilesTest, UnknownKindsAndFieldsAreNoMistake) {
  write("a.jsonl", R"({"kind":"dance","step":"x"})"
                   "\n" +
                       step_line(1, 10) + "\n" + R"({"kind":"step","time":2,"step":20,"new":[1]})" +
                       "\n");
  EXPECT_THAT(steps(), ElementsAre(10, 20));
}

TEST_F(RecordFilesTest, WhatIsWrongIsTold) {
  write("a.jsonl", step_line(1, 10) + R"({"kind":"step","time":2,"step":"abc"})" + "\n");
  EXPECT_THAT(refusal(), StartsWith((directory() / "records/a.jsonl").string()));
  EXPECT_THAT(refusal(),
              EndsWith(", line 2: step is \"\\\"abc\\\"\"; expected a whole number of at "
                       "least 0"));
  EXPECT_THAT(steps(BadLines::kSkip), ElementsAre(10));
  EXPECT_EQ(reading_.bad_lines, 1U);
}

std::string why(std::string_view line) { return read_record_line(line).why; }

TEST(RecordLine, SaysWhichFieldIsWrong) {
  EXPECT_THAT(why("nothing"), HasSubstr("\"nothing\" is not a JSON object"));
  EXPECT_THAT(why("[]"), HasSubstr("is not a JSON object"));
  EXPECT_THAT(why("{}"), StartsWith("kind is missing"));
  EXPECT_EQ(why(R"({"kind":1})"), "kind is \"1\"; expected text");
  EXPECT_EQ(why(R"({"kind":"step","time":1,"step":-1})"),
            "step is \"-1\"; expected a whole number of at least 0");
  EXPECT_EQ(why(R"({"kind":"step","step":1})"), "time is missing; expected a number");
  EXPECT_EQ(why(R"({"kind":"evaluation","time":1,"step":1,"test":{"accuracy":"x"}})"),
            "test.accuracy is \"\\\"x\\\"\"; expected a number, or null");
  EXPECT_EQ(why(R"({"kind":"evaluation","time":1,"step":1,"test":3})"),
            "test is \"3\"; expected an object");
  EXPECT_EQ(why(R"({"step":1,"seconds":2,"test_accuracy":"x"})"),
            "test_accuracy is \"\\\"x\\\"\"; expected a number, or null");
}

TEST(RecordLine, MayNotBeNestedDeeply) {
  EXPECT_NE(why(R"({"kind":"step","time":1,"step":1,"x":)" + std::string(1000, '[') +
                std::string(1000, ']') + "}"),
            "");
}

TEST(RecordLine, OfAMetricsFileIsAnEvaluation) {
  const RecordLine line = read_record_line(
      R"({"step":500,"seconds":1.5,"validation_cross_entropy":0.19,"validation_accuracy":0.95,)"
      R"("test_cross_entropy":null,"test_accuracy":0.94,"result":false})");
  EXPECT_EQ(line.why, "");
  EXPECT_EQ(line.record.dump(),
            R"({"kind":"evaluation","time":1.5,"source":"metrics_file","step":500,)"
            R"("validation":{"loss":0.19,"accuracy":0.95},"test":{"loss":null,"accuracy":0.94}})");
}

TEST(RecordLine, OfAMetricsFileOfAProgramHasItsNumbers) {
  const RecordLine line = read_record_line(
      R"({"step":5,"seconds":1.5,"validation_loss":0.5,"validation_f1":0.75,"result":true})");
  EXPECT_EQ(line.why, "");
  EXPECT_EQ(line.record.at("validation").dump(), R"({"loss":0.5,"numbers":{"f1":0.75}})");
}

TEST(RecordLine, NumbersAreAnObject) {
  EXPECT_EQ(why(R"({"kind":"step","time":1,"step":1,"numbers":3})"),
            "numbers is \"3\"; expected an object");
}

}  // namespace
}  // namespace disttf::roles
