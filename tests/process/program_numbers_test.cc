// The numbers between a run and a user's program: what WELCOME has, and how the log reports those
// that are not finite.
#include <fstream>
#include <iterator>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using ::testing::HasSubstr;

class ProgramNumbers : public ProcessTest {
 protected:
  Process& launch(const Words& client_words) {
    const std::string client = (source_directory() / "tests/support/program_client.py").string();
    return run("launch", Words{"launch", "--workers=1", "--train_steps=4", "--program_spare=false",
                               "--program", "--", "python3", "-B", client} +
                             client_words);
  }
};

TEST_F(ProgramNumbers, WelcomeHasTheShortestLearningRate) {
  ASSERT_TRUE(exits(launch({"welcome=welcome.json"}), kExitDone));
  std::ifstream file(scratch() / "welcome.json");
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(file), {}),
              HasSubstr("\"learning_rate\":0.01,"));
}

TEST_F(ProgramNumbers, ALossThatIsNoNumberNamesTheGradientsFirstSuchVariable) {
  Process& job = launch({"nan=2:loss"});
  EXPECT_TRUE(exits(job, kExitError));
  EXPECT_TRUE(says(job,
                   "the loss became nan at step 2: training has diverged; .* may help; the "
                   "first non-finite gradient is that of variable 2 of 2, b, element 0: nan"));
}

TEST_F(ProgramNumbers, AGradientThatIsNoNumberNamesItsVariable) {
  Process& job = launch({"nan=2"});
  EXPECT_TRUE(exits(job, kExitError));
  EXPECT_TRUE(says(job,
                   "the gradient for step 2 has non-finite values, 1 of 32: .*; the first is "
                   "in b"));
}

}  // namespace
}  // namespace disttf::test_process
