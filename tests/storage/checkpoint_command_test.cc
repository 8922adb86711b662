#include "storage/checkpoint/shell/checkpoint_command.h"

#include <gmock/gmock.h>

#include "run/outcome.h"
#include "run/process/log.h"
#include "tests/storage/checkpoint_fixture.h"

namespace disttf::roles::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class CheckpointCommandTest : public CheckpointTest {
 protected:
  CheckpointCommandTest() { set_up_log({}); }

  // Returns the standard output and stores the exit code in exit_code_.
  std::string run(CheckpointAction action, const std::filesystem::path& directory) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    set_up_log({});  // logs to the captured streams
    try {
      exit_code_ = run_checkpoint_command({.action = action, .directory = directory});
    } catch (const Failure& failure) {
      exit_code_ = failure.exit_code();
      sentence_ = failure.what();
    }
    log_ = testing::internal::GetCapturedStderr();
    return testing::internal::GetCapturedStdout();
  }
  std::string run(CheckpointAction action) { return run(action, scratch_.path()); }

  void damage_last_tensor(const char* checkpoint) {
    change(file(checkpoint, kShard), [](auto& bytes) { bytes.back() ^= 1U; });
  }

  int exit_code_ = -1;
  std::string sentence_;
  std::string log_;
};

TEST_F(CheckpointCommandTest, ActionsHaveNames) {
  EXPECT_EQ(checkpoint_action_from_name("ls"), CheckpointAction::kList);
  EXPECT_EQ(checkpoint_action_from_name("verify"), CheckpointAction::kVerify);
  EXPECT_EQ(checkpoint_action_from_name("show"), CheckpointAction::kShow);
  EXPECT_EQ(checkpoint_action_from_name("rm"), std::nullopt);
}

TEST_F(CheckpointCommandTest, LsHasALineForEachNewestFirst) {
  save(5);
  save_shards(state(10), {{0, 32}, {32, 112}});
  EXPECT_THAT(run(CheckpointAction::kList),
              MatchesRegex("checkpoint-00000010  [0-9TZ:-]+  [0-9]+ bytes in 2 files\n"
                           "checkpoint-00000005  [0-9TZ:-]+  [0-9]+ bytes in 1 file\n"));
  EXPECT_EQ(exit_code_, kDone);
}

TEST_F(CheckpointCommandTest, LsNamesWhatIsNotWhole) {
  save(5);
  save(6);
  std::filesystem::remove(file("checkpoint-00000005", kIndex));
  std::filesystem::remove(file("checkpoint-00000006", kShard));
  static_cast<void>(write_shards({.step = 7, .attempt = 1}, state(7), {{0, 112}}));
  const std::string lines = run(CheckpointAction::kList);
  EXPECT_EQ(exit_code_, kDone);
  EXPECT_THAT(lines, HasSubstr("checkpoint-00000005  -  damaged: cannot read "));
  EXPECT_THAT(lines, ContainsRegex("checkpoint-00000006  [^ ]+  damaged: cannot read .*" +
                                   std::string(kShard)));
  EXPECT_THAT(lines, HasSubstr("checkpoint-00000007.partial-0000000000000001  "));
}

TEST_F(CheckpointCommandTest, LsOfNothingPrintsNothing) {
  EXPECT_EQ(run(CheckpointAction::kList), "");
  EXPECT_EQ(exit_code_, kDone);
}

TEST_F(CheckpointCommandTest, VerifySaysOfEachThatItIsWhole) {
  save(5);
  save_shards(state(10), {{0, 32}, {32, 112}});
  const std::string directory = scratch_.path().string();
  EXPECT_EQ(run(CheckpointAction::kVerify), directory + "/checkpoint-00000010: whole\n" +
                                                directory + "/checkpoint-00000005: whole\n");
  EXPECT_EQ(exit_code_, kDone);
}

TEST_F(CheckpointCommandTest, VerifyNamesEveryTensorAndFileThatIsWrong) {
  save(5);
  save_shards(state(10), {{0, 32}, {32, 112}});
  std::filesystem::resize_file(file("checkpoint-00000010", "model-00001-of-00002.safetensors"), 9);
  change(file("checkpoint-00000010", "model-00002-of-00002.safetensors"), [](auto& bytes) {
    bytes[bytes.size() - 1] ^= 1U;          // the last of sm_b/v
    bytes[bytes.size() - 4 * 3 - 1] ^= 1U;  // the last of sm_w/v
  });
  const std::string lines = run(CheckpointAction::kVerify);
  EXPECT_EQ(exit_code_, kBadData);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 5);
  EXPECT_THAT(lines, HasSubstr("model-00001-of-00002.safetensors has 9 bytes, expected "));
  EXPECT_THAT(lines, HasSubstr("sm_w/v in "));
  EXPECT_THAT(lines, HasSubstr("sm_b/v in "));
  EXPECT_THAT(lines, HasSubstr("/checkpoint-00000010: damaged\n"));
  EXPECT_THAT(lines, HasSubstr("/checkpoint-00000005: whole\n"));
}

TEST_F(CheckpointCommandTest, OneCheckpointIsVerifiedAlone) {
  save(5);
  save(10);
  damage_last_tensor("checkpoint-00000010");
  for (const char* name : {"checkpoint-00000005", "checkpoint-00000005/"}) {
    EXPECT_THAT(run(CheckpointAction::kVerify, scratch_.path() / name), HasSubstr(": whole\n"));
    EXPECT_EQ(exit_code_, kDone);
  }
  EXPECT_THAT(run(CheckpointAction::kVerify, scratch_.path() / "checkpoint-00000010"),
              Not(HasSubstr("whole")));
  EXPECT_EQ(exit_code_, kBadData);
}

TEST_F(CheckpointCommandTest, ACheckpointMayBeMovedAndRenamed) {
  save(5);
  std::filesystem::rename(scratch_.path() / "checkpoint-00000005", scratch_.path() / "best");
  run(CheckpointAction::kVerify, scratch_.path() / "best");
  EXPECT_EQ(exit_code_, kDone);
}

TEST_F(CheckpointCommandTest, NothingToVerifyIsBadData) {
  run(CheckpointAction::kVerify);
  EXPECT_EQ(exit_code_, kBadData);
  EXPECT_EQ(sentence_, "no checkpoint in " + scratch_.path().string());
}

TEST_F(CheckpointCommandTest, ShowHasStepConfigurationAndTensors) {
  TrainingState small;
  small.step = 12;
  small.parameters = math::AlignedVector(layout_.size());
  small.optimizer.push_back({.name = "m", .values = math::AlignedVector(layout_.size())});
  small.parameters.span()[48] = -3.0F;  // hid_b: -3 0 0 4 0 0 0
  small.parameters.span()[51] = 4.0F;
  checkpoints_.save(1, small, layout_, kConfig, 0);
  const std::string lines = run(CheckpointAction::kShow);
  EXPECT_EQ(exit_code_, kDone);
  EXPECT_THAT(lines, HasSubstr("/checkpoint-00000012\n"));
  EXPECT_THAT(lines, ContainsRegex("\nstep +12\n"));
  EXPECT_THAT(lines, ContainsRegex("\n  seed +7\n"));
  EXPECT_THAT(lines, ContainsRegex("\n  optimizer +\"adam\"\n"));
  EXPECT_THAT(lines, ContainsRegex("\n  hid_w \\[5, 7\\] +0 +0 +0 +0\n"));
  EXPECT_THAT(lines, ContainsRegex("\n  hid_b \\[7\\] +-3 +4 +0.142857 +5\n"));
  EXPECT_THAT(lines, ContainsRegex("\n  sm_b/m \\[3\\] "));
}

TEST_F(CheckpointCommandTest, ShowTakesTheNewestWholeOneAndSaysWhy) {
  save(5);
  save(6);
  damage_last_tensor("checkpoint-00000006");
  EXPECT_THAT(run(CheckpointAction::kShow), HasSubstr("/checkpoint-00000005\n"));
  EXPECT_EQ(exit_code_, kDone);
  EXPECT_THAT(log_, HasSubstr("sm_b/v in "));
  damage_last_tensor("checkpoint-00000005");
  EXPECT_EQ(run(CheckpointAction::kShow), "");
  EXPECT_EQ(exit_code_, kBadData);
}

TEST_F(CheckpointCommandTest, WhatTheConfigurationHoldsCannotDriveATerminal) {
  checkpoints_.save(1, state(5), layout_, R"({"a\u001b[2J":"b\u001b[2J"})", 0);
  const std::string lines = run(CheckpointAction::kShow);
  EXPECT_EQ(lines.find('\x1b'), std::string::npos);
}

TEST_F(CheckpointCommandTest, ADirectoryThatIsNotThereIsAUsageError) {
  for (const auto action :
       {CheckpointAction::kList, CheckpointAction::kVerify, CheckpointAction::kShow}) {
    run(action, scratch_.path() / "never");
    EXPECT_EQ(exit_code_, kUsage);
    EXPECT_THAT(sentence_, HasSubstr("never\" is not a directory"));
  }
}

}  // namespace
}  // namespace disttf::roles::test
