// The memory available to this process, from files with the kernel's format.
#include "run/process/available_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "run/outcome.h"
#include "tests/data/scratch.h"

namespace disttf::roles {
namespace {

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
