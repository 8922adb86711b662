#include "run/process/machine.h"

#include <gtest/gtest.h>

#include "tests/one_processor.h"

namespace disttf::roles {
namespace {

class MachineTest : public testing::Test {
 protected:
  MachineTest() {
    task_.cluster.ps = {{"here", 1}, {"there", 1}};
    task_.cluster.workers = {{"here", 2}, {"there", 2}, {"here", 3}};
    task_.cluster.chief = {{"here", 4}};
    task_.self = {.job = net::Job::kWorker, .index = 2};
    task_.threads = 1;
  }
  Task task_;
};

TEST_F(MachineTest, CountsTheTasksOfItsHost) {
  EXPECT_EQ(tasks_here(task_).ps, 1U);
  EXPECT_EQ(tasks_here(task_).trainers, 3U);
  task_.self.index = 1;
  EXPECT_EQ(tasks_here(task_).trainers, 1U);
}

TEST_F(MachineTest, KnowsWhetherTrainersHaveProcessorsEach) {
  task_.self.index = 1;  // the only task on its machine
  EXPECT_TRUE(have_processors_each(task_));
  task_.threads = static_cast<unsigned>(allowed_processors()) + 1;
  EXPECT_FALSE(have_processors_each(task_));
}

// Trainers that this process has no addresses of may run on the same machine.
TEST_F(MachineTest, DoesNotTrustAClusterThatItKnowsInPart) {
  task_.self.index = 1;
  task_.cluster.sparse = true;
  EXPECT_FALSE(have_processors_each(task_));
  task_.cluster.sparse = false;
  task_.cluster.open = true;
  EXPECT_FALSE(have_processors_each(task_));
}

// Not all processors of the machine.
TEST(Processors, AreThoseThatItMayRunOn) {
  on_one_processor([] {
    EXPECT_EQ(allowed_processors(), 1U);
    EXPECT_EQ(processors(), 1U);
  });
}

// A container on a large machine may have the time of a few processors.
TEST(Processors, AreNoMoreThanItHasTimeOf) {
  EXPECT_EQ(usable_processors(64, std::nullopt), 64U);
  EXPECT_EQ(usable_processors(64, 128.0), 64U);
  EXPECT_EQ(usable_processors(64, 2.0), 2U);
  EXPECT_EQ(usable_processors(64, 1.5), 2U);
  EXPECT_EQ(usable_processors(1, 0.01), 1U);
}

}  // namespace
}  // namespace disttf::roles
