// --test_shifts: changes how images are scored, and nothing about training.
#include <fstream>
#include <string>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

class TestShifts : public ProcessTest {
 protected:
  Process& launch(const Words& flags) {
    Process& job = run("launch", Words{"launch", "--workers=2", "--hidden_units=16",
                                       "--train_steps=20", "--print_weights_hash"} +
                                     flags + data_flags());
    EXPECT_TRUE(exits(job, kExitDone));
    return job;
  }
  static std::string validation_of(const Process& job) {
    return captured(job.standard_output(), "validation cross entropy = ([0-9.]+)\n");
  }
};

TEST_F(TestShifts, ChangeWhatIsFoundButNotTheWeights) {
  Process& as_it_is = launch({});
  Process& shifted = launch({"--test_shifts=1"});
  EXPECT_EQ(weights_hash_in(shifted), weights_hash_in(as_it_is));
  EXPECT_NE(validation_of(shifted), validation_of(as_it_is));
  Process& shared = launch({"--test_shifts=1", "--threads=2", "--ps=2"});
  EXPECT_EQ(validation_of(shared), validation_of(shifted));
}

TEST_F(TestShifts, AreRefusedForATable) {
  const std::string path = (scratch() / "t.csv").string();
  std::ofstream file(path);
  file << "x,y,class\n";
  for (int row = 0; row < 60; ++row) {
    file << row << "," << row % 7 << "," << (row % 2 == 0 ? "even" : "odd") << "\n";
  }
  file.close();
  Process& job = run("launch", {"launch", "--workers=2", "--test_shifts=1", "--data=" + path,
                                "--data_dir=" + (scratch() / "data").string()});
  EXPECT_TRUE(exits(job, kExitUsage));
  EXPECT_TRUE(says(job, "--test_shifts: 1 is not allowed for a table: only images can be shifted"));
}

}  // namespace
}  // namespace disttf::test_process
