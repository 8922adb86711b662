// Another process writes to the files of the data set while a run trains on them. Each trainer has
// verified its own copy, so the run continues with the weights of an undisturbed run.
#include <fstream>
#include <functional>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

namespace fs = std::filesystem;

class DataChanges : public ProcessTest {
 protected:
  void SetUp() override { fs::create_directory(data_); }
  // A trainer that a signal ends is not restarted.
  Process& launch(const std::string& name, const Words& more = {}) {
    return run(name, Words{"launch", "--ps=1", "--workers=2", "--train_steps=60", "--log_every=1",
                           "--print_weights_hash", "--max_restarts=0", "--dataset=digits",
                           "--data_dir=" + data_.string()} +
                         more);
  }
  [[nodiscard]] std::vector<fs::path> data_files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(data_)) {
      if (entry.path().filename().string().ends_with("-ubyte")) {
        files.push_back(entry.path());
      }
    }
    return files;
  }
  // Applies `change` to each file in the middle of a run.
  void expect_undisturbed_by(const std::function<void(const fs::path&)>& change) {
    Process& undisturbed = launch("undisturbed");
    ASSERT_TRUE(exits(undisturbed, kExitDone));
    ASSERT_EQ(data_files().size(), 4U);
    Process& disturbed = launch("disturbed", {"--debug_delay_ms=20"});
    for (const char* worker : {"worker:0", "worker:1"}) {
      ASSERT_TRUE(says(disturbed, std::string(worker) + "\\] .*training step 3 done"));
    }
    for (const fs::path& file : data_files()) {
      change(file);
    }
    ASSERT_EQ(count_of(disturbed.standard_error(), "training step 60 done"), 0U)
        << "the run was over before the files were changed";
    ASSERT_TRUE(exits(disturbed, kExitDone));
    EXPECT_EQ(weights_hash_in(disturbed), weights_hash_in(undisturbed));
    EXPECT_EQ(accuracy_of(disturbed), accuracy_of(undisturbed));
  }
  static std::string accuracy_of(const Process& process) {
    return captured(process.standard_output(), "Digits accuracy: (0\\.[0-9]{4})\n");
  }

  const fs::path data_ = scratch() / "data";
};

TEST_F(DataChanges, CutShortInPlace) {
  expect_undisturbed_by([](const fs::path& file) { fs::resize_file(file, 0); });
}

TEST_F(DataChanges, OverwrittenInPlace) {
  expect_undisturbed_by([](const fs::path& file) {
    const std::string other(fs::file_size(file), '\1');
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    ASSERT_TRUE(stream.write(other.data(), static_cast<std::streamsize>(other.size())).flush());
  });
}

TEST_F(DataChanges, ReplacedByAnotherFile) {
  expect_undisturbed_by([](const fs::path& file) {
    const fs::path other = file.string() + ".new";
    std::ofstream(other) << "another data set";
    fs::rename(other, file);
  });
}

}  // namespace
}  // namespace disttf::test_process
