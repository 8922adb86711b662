// A user's own table trains as MNIST does: in several processes, with the same bits, and with one
// sentence where it cannot.
#include <cmath>
#include <fstream>
#include <string>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

class OwnTable : public ProcessTest {
 protected:
  // Points on a plane in three heaps, which a line does not separate from each other.
  std::string put(const std::string& name, std::size_t rows) {
    const std::string path = (scratch() / name).string();
    std::ofstream file(path);
    file << "x,y,heap\n";
    for (std::size_t row = 0; row < rows; ++row) {
      // A walk around a circle whose turns do not repeat.
      const double angle = 2.399963 * static_cast<double>(row);
      const std::size_t heap = row % 3;
      const double radius = static_cast<double>(heap) * 10 + 0.5;
      file << radius * std::cos(angle) << "," << 1000 + radius * std::sin(angle) << ","
           << (heap == 0   ? "near"
               : heap == 1 ? "middle"
                           : "far")
           << "\n";
    }
    return path;
  }
  [[nodiscard]] Words flags(const std::string& path) const {
    return {"--data=" + path,      "--data_dir=" + (scratch() / "data").string(),
            "--label_column=heap", "--train_steps=300",
            "--batch_size=20",     "--hidden_units=16"};
  }
};

TEST_F(OwnTable, TrainsToItsClasses) {
  Process& job = run(
      "launch", Words{"launch", "--workers=2", "--print_classes"} + flags(put("heaps.csv", 600)));
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(
      says(job, "Converting .*heaps.csv: 2 columns of numbers, the label is in column heap"));
  EXPECT_TRUE(says(job, "heaps accuracy: (1.0000|0.9[0-9]+)"));
  EXPECT_TRUE(says(job, "middle"));
}

TEST_F(OwnTable, HasTheSameBitsForAnyNumberOfPs) {
  const std::string path = put("heaps.csv", 200);
  std::string first;
  for (const char* const ps : {"--ps=1", "--ps=3"}) {
    for (const char* const transport : {"--transport=tcp", "--transport=auto"}) {
      Process& job =
          run("launch",
              Words{"launch", "--workers=2", ps, transport, "--print_weights_hash"} + flags(path));
      ASSERT_TRUE(exits(job, kExitDone));
      const std::string result = job.standard_output();
      const std::string hash = result.substr(result.find("SHA-256: "), 73);
      first = first.empty() ? hash : first;
      EXPECT_EQ(hash, first);
    }
  }
}

// z = 3 x - y + 100, of which a model that only guesses is 25 away on average.
TEST_F(OwnTable, WithNumbersForLabelsTrainsToComeNear) {
  const std::string path = (scratch() / "plane.csv").string();
  std::ofstream file(path);
  file << "x,y,z\n";
  for (int row = 0; row < 600; ++row) {
    const int x = row * 7 % 31 - 15;
    const int y = row * 11 % 37;
    file << x << "," << y << "," << 3 * x - y + 100 << "\n";
  }
  file.close();
  std::string first;
  for (const char* const ps : {"--ps=1", "--ps=2"}) {
    Process& job =
        run("launch", Words{"launch", "--workers=2", ps, "--data=" + path,
                            "--data_dir=" + (scratch() / "data").string(), "--label_type=number",
                            "--train_steps=500", "--print_weights_hash", "--hidden_units=8"});
    ASSERT_TRUE(exits(job, kExitDone));
    EXPECT_TRUE(says(job, "validation mean squared error = [0-9.]+"));
    EXPECT_TRUE(
        says(job, "plane mean absolute error: [0-3][.][0-9]+, mean squared error: [0-9.]+"));
    const std::string result = job.standard_output();
    const std::string hash = result.substr(result.find("SHA-256: "), 73);
    first = first.empty() ? hash : first;
    EXPECT_EQ(hash, first);
  }
}

// The name of a table is no data set's.
TEST_F(OwnTable, MayBeCalledAsTheBuiltInDigitsAre) {
  Process& job = run("launch", Words{"launch", "--workers=2"} + flags(put("Digits.csv", 200)));
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(says(job, "Digits accuracy: "));
}

TEST_F(OwnTable, WithClassesInAnyBytesHasItsMetrics) {
  const std::string path = (scratch() / "cities.csv").string();
  std::ofstream file(path);
  for (int row = 0; row < 200; ++row) {
    file << row % 2 << "," << (row % 2 == 0 ? "M\xFCnchen" : "K\xF6ln") << "\n";
  }
  file.close();
  Process& job =
      run("launch", Words{"launch", "--workers=1", "--data=" + path,
                          "--data_dir=" + (scratch() / "data").string(), "--train_steps=20",
                          "--hidden_units=4", "--metrics_file=" + (scratch() / "m").string()});
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(says(job, "cities accuracy: "));
}

TEST_F(OwnTable, RefusesALossOfTheOtherKindOfLabels) {
  Process& job = run("launch", Words{"launch", "--restart=never", "--loss=mean_squared_error"} +
                                   flags(put("heaps.csv", 100)));
  EXPECT_TRUE(exits(job, kExitUsage));
  EXPECT_TRUE(says(job, "--loss: mean_squared_error is not allowed where labels are classes"));
}

TEST_F(OwnTable, ThatIsAnotherOneThanTheChiefsIsRefused) {
  const ClusterOnLoopback cluster{{.ps = 1, .workers = 2}};
  const std::string path = put("heaps.csv", 200);
  std::filesystem::create_directory(scratch() / "elsewhere");
  const std::string other = put("elsewhere/heaps.csv", 300);
  const Words lists = {"--ps_hosts=" + cluster.address(net::Job::kPs, 0),
                       "--worker_hosts=" + cluster.address(net::Job::kWorker, 0) + "," +
                           cluster.address(net::Job::kWorker, 1),
                       "--worker_timeout=1", "--peer_timeout=1"};
  Process& ps = run("ps", Words{"ps", "--task_index=0"} + lists);
  Process& chief = run("chief", Words{"worker", "--task_index=0"} + flags(path) + lists);
  Process& worker = run("worker", Words{"worker", "--task_index=1"} + flags(other) + lists);
  EXPECT_TRUE(exits(worker, kExitBadData));
  EXPECT_TRUE(says(
      worker, "--data: the chief trains on heaps .SHA-256 [0-9a-f]{12}., this task has heaps"));
  EXPECT_TRUE(all_exit({&ps, &chief}, kExitLostPeers));
}

TEST_F(OwnTable, ThatCannotBeReadIsToldInASentence) {
  const std::string path = put("heaps.csv", 50);
  std::ofstream(path, std::ios::app) << "1,two,near\n";
  Process& job = run("launch", Words{"launch", "--restart=never"} + flags(path));
  EXPECT_TRUE(exits(job, kExitBadData));
  EXPECT_TRUE(says(job, "heaps.csv, line 52, column 2 .y.: \"two\" is not a number of 32 bits"));
}

TEST_F(OwnTable, IsShownByInspect) {
  const std::string path = put("heaps.csv", 60);
  const Words where = {"--data_dir=" + (scratch() / "data").string()};
  Process& text = run("data", Words{"data", "inspect", path} + where);
  ASSERT_TRUE(exits(text, kExitDone));
  EXPECT_THAT(text.standard_output(),
              testing::HasSubstr("heaps: 60 rows of 2 numbers, 3 classes in column heap\n"
                                 "48 to train on, 6 for validation, 6 for the test\n"));
  Process& json = run("data json", Words{"data", "inspect", path, "--json"} + where);
  ASSERT_TRUE(exits(json, kExitDone));
  EXPECT_THAT(json.standard_output(), testing::HasSubstr("\"label_column\": \"heap\""));
}

}  // namespace
}  // namespace disttf::test_process
