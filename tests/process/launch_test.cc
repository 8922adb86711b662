// `disttf launch`: the whole job on one machine.
#include <csignal>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

class Launch : public ProcessTest {
 protected:
  Process& launch(const Words& arguments) {
    return run("launch", Words{"launch"} + arguments + data_flags());
  }
};

// Sizes of the default job: the promise is made for it.
TEST_F(Launch, ReachesTheAccuracyOfTheTutorialsWithAllDefaults) {
  Process& job = launch({"--workers=2", "--ps=1"});
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_GE(accuracy_in(job), has_mnist() ? 0.975 : 0.9);
}

}  // namespace
}  // namespace disttf::test_process
