// `disttf cp` between places of this machine.
#include "storage/store/shell/copy_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/data/scratch.h"

namespace disttf::roles {
namespace {

namespace fs = std::filesystem;

constexpr fs::perms kAllMayRun =
    fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;

class CopyFiles : public ::testing::Test {
 protected:
  // The permissions of the copy of a file with these.
  fs::perms copied(fs::perms permissions) {
    const fs::path from = scratch_.path() / "from";
    std::ofstream(from) << "text";
    fs::permissions(from, permissions);
    const fs::path to = scratch_.path() / "folder" / "to";
    EXPECT_EQ(copy_files({{.from = from, .to = to}}, 1), 4U);
    return fs::status(to).permissions();
  }

 private:
  data::test::ScratchDirectory scratch_;
};

// An engine's first step copies disttf into a container of another image, and no `chmod` exists in
// the image that it copies from.
TEST_F(CopyFiles, AProgramStaysAProgram) {
  EXPECT_EQ(copied(fs::perms(0755)) & kAllMayRun, kAllMayRun);
  EXPECT_EQ(copied(fs::perms(0700)) & kAllMayRun, kAllMayRun);
}

TEST_F(CopyFiles, OtherFilesCannotBeRun) {
  EXPECT_EQ(copied(fs::perms(0600)) & kAllMayRun, fs::perms::none);
}

}  // namespace
}  // namespace disttf::roles
