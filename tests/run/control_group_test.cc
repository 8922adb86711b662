// Limits of control groups, from files with the kernel's format.
#include "run/process/control_group.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "tests/data/scratch.h"

namespace disttf::roles {
namespace {

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

}  // namespace
}  // namespace disttf::roles
