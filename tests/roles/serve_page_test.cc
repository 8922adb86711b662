// What a run's records say about the accuracy of its checkpoints while the records are being
// written.
#include "roles/serve/shell/serve_page.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/data/scratch.h"

namespace disttf::roles {
namespace {

class RunAccuracyTest : public testing::Test {
 protected:
  void tell(const std::string& lines) {
    std::filesystem::create_directories(scratch_.path() / "records");
    std::ofstream(scratch_.path() / "records" / "1.jsonl", std::ios::app) << lines;
  }
  static std::string evaluation(int step, const std::string& test) {
    return R"({"kind":"evaluation","time":)" + std::to_string(step) + R"(,"step":)" +
           std::to_string(step) + R"(,"last":false,"test":)" + test + "}\n";
  }

  data::test::ScratchDirectory scratch_;
  RunAccuracy accuracy_{scratch_.path()};
};

TEST_F(RunAccuracyTest, KnowsWhatHasBeenToldOfAStep) {
  accuracy_.look();  // of a directory without records
  EXPECT_EQ(accuracy_.of(20), std::nullopt);
  tell(evaluation(20, R"({"loss":0.5,"accuracy":0.75})"));
  accuracy_.look();
  EXPECT_EQ(accuracy_.of(20), 0.75);
  tell(evaluation(40, R"({"loss":0.4,"accuracy":0.875})"));
  accuracy_.look();
  EXPECT_EQ(accuracy_.of(20), 0.75);
  EXPECT_EQ(accuracy_.of(40), 0.875);
  EXPECT_EQ(accuracy_.of(30), std::nullopt);
}

TEST_F(RunAccuracyTest, LeavesAloneWhatItCannotRead) {
  tell("no json\n{\"kind\":\"evaluation\"}\n" + evaluation(10, R"({"absolute_error":3})") +
       evaluation(20, R"({"loss":1,"accuracy":0.5})"));
  accuracy_.look();
  EXPECT_EQ(accuracy_.of(10), std::nullopt);
  EXPECT_EQ(accuracy_.of(20), 0.5);
}

}  // namespace
}  // namespace disttf::roles
