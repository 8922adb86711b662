#include "run/process/machine.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <optional>
#include <string>

#include "run/outcome.h"
#include "run/process/resource_limits.h"
#include "tests/data/scratch.h"
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

// Limits of control groups, from files with the kernel's format.

class ControlGroupTest : public testing::Test {
 protected:
  ControlGroupTest() { is_in("0::/\n"); }

  void is_in(const std::string& groups) { file("proc/self/cgroup", groups); }
  void file(const std::string& name, const std::string& text) {
    const auto path = machine_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    data::test::write(path, data::test::bytes_of(text));
  }
  // A cgroup v1 quota, per 100 ms.
  void quota(const std::string& group, const std::string& text) {
    file("sys/fs/cgroup/" + group + "/cpu.cfs_quota_us", text);
    file("sys/fs/cgroup/" + group + "/cpu.cfs_period_us", "100000\n");
  }

  data::test::ScratchDirectory machine_;
  ControlGroup group_{machine_.path()};
};

TEST_F(ControlGroupTest, LimitsProcessors) {
  const auto limit = [this](const std::string& text) {
    file("sys/fs/cgroup/cpu.max", text);
    return group_.processors();
  };
  EXPECT_EQ(limit("150000 100000\n"), 1.5);
  for (const char* none : {"max 100000\n", "150000\n", "150000", "150000 0\n", "0 100000\n", ""}) {
    EXPECT_EQ(limit(none), std::nullopt) << none;
  }
}

TEST_F(ControlGroupTest, LimitsMemory) {
  const auto limit = [this](const std::string& text) {
    file("sys/fs/cgroup/memory.max", text);
    return group_.memory_bytes();
  };
  EXPECT_EQ(limit("536870912\n"), 536'870'912U);
  for (const char* none : {"max\n", "", "12x", "99999999999999999999"}) {
    EXPECT_EQ(limit(none), std::nullopt) << none;
  }
}

TEST_F(ControlGroupTest, HasNoMoreThanThoseAbove) {
  is_in("1:name=systemd:/elsewhere\n0::/pods/mine\n");
  file("sys/fs/cgroup/pods/mine/cpu.max", "400000 100000\n");
  file("sys/fs/cgroup/pods/cpu.max", "250000 100000\n");
  file("sys/fs/cgroup/elsewhere/cpu.max", "10000 100000\n");
  EXPECT_EQ(group_.processors(), 2.5);
}

TEST_F(ControlGroupTest, IsOfVersion1) {
  is_in("4:memory:/a\n3:cpuset:/b\n2:cpu,cpuacct:/c/d\n0::/\n");
  quota("cpu/c", "50000\n");
  quota("cpu/c/d", "-1\n");
  quota("cpu/b", "10000\n");  // of another controller
  EXPECT_EQ(group_.processors(), 0.5);
  file("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");  // unlimited
  EXPECT_EQ(group_.memory_bytes(), std::nullopt);
  file("sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576\n");
  EXPECT_EQ(group_.memory_bytes(), 1'048'576U);
}

// In a container the group's path is the one on the host. That path does not exist in the
// container, or a part of it names another group, or it lies above the root.
TEST_F(ControlGroupTest, IsShownAsTheRoot) {
  file("sys/fs/cgroup/cpu.max", "200000 100000\n");
  file("sys/fs/cgroup/kubepods/cpu.max", "100000 100000\n");
  for (const char* path : {"0::/docker/1\n", "0::/kubepods/pod1\n", "0::/../..\n"}) {
    is_in(path);
    EXPECT_EQ(group_.processors(), 2.0) << path;
  }
  quota("cpu", "300000\n");
  is_in("5:cpuacct,cpu:/docker/1\n");
  EXPECT_EQ(group_.processors(), 3.0);
}

TEST_F(ControlGroupTest, IsNone) {
  file("sys/fs/cgroup/cpu.max", "200000 100000\n");
  file("sys/fs/cgroup/memory.max", "1048576\n");
  for (const char* nothing : {"", "\n", "0\n", "0:\n", "12:memory\n", "3:pids:/\n"}) {
    is_in(nothing);
    EXPECT_EQ(group_.processors(), std::nullopt) << nothing;
    EXPECT_EQ(group_.memory_bytes(), std::nullopt) << nothing;
  }
  EXPECT_EQ(ControlGroup(machine_.path() / "nowhere").processors(), std::nullopt);
}

// The memory available to this process, from files with the kernel's format.

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Property;
using ::testing::Throws;
using ::testing::ThrowsMessage;

class AvailableMemoryTest : public testing::Test {
 protected:
  AvailableMemoryTest() {
    file("proc/meminfo", "MemTotal:       16000000 kB\nMemAvailable:    8000000 kB\n");
    file("proc/self/cgroup", "0::/pods/mine\n");
    file("sys/fs/cgroup/pods/mine/memory.max", "max\n");
  }
  void file(const std::string& name, const std::string& text) {
    const auto path = machine_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    data::test::write(path, data::test::bytes_of(text));
  }
  [[nodiscard]] std::optional<std::uint64_t> available() const {
    return available_memory_bytes(machine_.path());
  }

  data::test::ScratchDirectory machine_;
};

TEST_F(AvailableMemoryTest, IsWhatTheMachineHas) {
  EXPECT_EQ(available(), 8'000'000ULL << 10U);
  file("proc/meminfo", "");
  EXPECT_EQ(available(), std::nullopt);
}

TEST_F(AvailableMemoryTest, IsWhatTheGroupLeaves) {
  file("sys/fs/cgroup/pods/mine/memory.max", "1000000000\n");
  file("sys/fs/cgroup/pods/mine/memory.current", "700000000\n");
  EXPECT_EQ(available(), 300'000'000U);
  file("sys/fs/cgroup/pods/mine/memory.stat", "anon 1\ninactive_file 200000000\nactive_file 9\n");
  EXPECT_EQ(available(), 500'000'000U) << "pages of files are given up";
  file("sys/fs/cgroup/pods/mine/memory.current", "1700000000\n");
  EXPECT_EQ(available(), 0U);
}

TEST_F(AvailableMemoryTest, IsWhatTheGroupsAboveLeave) {
  file("sys/fs/cgroup/pods/memory.max", "2000000\n");
  file("sys/fs/cgroup/pods/memory.current", "500000\n");
  EXPECT_EQ(available(), 1'500'000U);
}

TEST_F(AvailableMemoryTest, IsWhatAGroupOfTheFirstVersionLeaves) {
  file("proc/self/cgroup", "4:memory:/a\n");
  file("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000\n");
  file("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "900\n");
  file("sys/fs/cgroup/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 100\n");
  EXPECT_EQ(available(), 200U);
}

TEST(RequireMemory, NamesWhatIsWantedAndWhatThereIs) {
  require_memory(1, "ps 0", "its range");
  EXPECT_THAT(
      [] { require_memory(std::uint64_t{1} << 60U, "ps 0", "its range"); },
      ThrowsMessage<Failure>(AllOf(
          HasSubstr(
              "ps 0 does not have the memory for its range: it takes 1099511627776 MiB, and "),
          HasSubstr(" MiB are available"))));
  EXPECT_THAT([] { require_memory(std::uint64_t{1} << 60U, "", ""); },
              Throws<Failure>(Property(&Failure::exit_code, int{kError})));
}

}  // namespace
}  // namespace disttf::roles
