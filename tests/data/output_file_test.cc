// The file that a user names for a result.
#include "data/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "data/file.h"
#include "tests/data/scratch.h"

namespace disttf::data {
namespace {

namespace fs = std::filesystem;

class OutputFile : public ::testing::Test {
 protected:
  static std::string text_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static ino_t inode_of(const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(stat(path.c_str(), &status), 0);
    return status.st_ino;
  }
  static void put(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

  test::ScratchDirectory scratch_;
  const fs::path folder_ = scratch_.path();
};

TEST_F(OutputFile, IsMadeOrReplacedWhole) {
  const fs::path path = folder_ / "result";
  write_output_file(path, "one");
  EXPECT_EQ(text_of(path), "one");
  const ino_t before = inode_of(path);
  write_output_file(path, "two");
  EXPECT_EQ(text_of(path), "two");
  EXPECT_NE(inode_of(path), before) << "a reader of the old file has all of it";
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(OutputFile, WhatALinkLeadsToIsReplacedAndTheLinkStays) {
  fs::create_directory(folder_ / "elsewhere");
  put(folder_ / "elsewhere" / "target", "old");
  fs::create_symlink("elsewhere/target", folder_ / "inner");
  fs::create_symlink(folder_ / "inner", folder_ / "link");
  write_output_file(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "inner"));
  EXPECT_EQ(text_of(folder_ / "elsewhere" / "target"), "new");
}

TEST_F(OutputFile, ALinkThatLeadsNowhereYetLeadsToTheResult) {
  fs::create_symlink("target", folder_ / "link");
  write_output_file(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(text_of(folder_ / "target"), "new");
}

TEST_F(OutputFile, ADeviceStays) {
  fs::create_symlink("/dev/null", folder_ / "link");
  write_output_file(folder_ / "link", "gone");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(OutputFile, AFifoIsWrittenToAndStays) {
  const fs::path fifo = folder_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const FileDescriptor reader(open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  for (const OutputReader kind : {OutputReader::kIsAwaited, OutputReader::kIsNot}) {
    write_output_file(fifo, "text", kind);
    std::array<char, 16> buffer{};
    EXPECT_EQ(read(reader.number(), buffer.data(), buffer.size()), 4);
    EXPECT_TRUE(fs::is_fifo(fifo));
  }
}

TEST_F(OutputFile, AFifoWithoutAReaderIsRefusedAtOnce) {
  const fs::path fifo = folder_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  try {
    write_output_file(fifo, "text");
    FAIL();
  } catch (const std::system_error& error) {
    EXPECT_NE(std::string(error.what()).find("which no process reads"), std::string::npos);
  }
  EXPECT_TRUE(fs::is_fifo(fifo));
}

// The case of /dev/stdout if standard output is a file.
TEST_F(OutputFile, AFileThatIsOpenAlreadyIsAddedTo) {
  put(folder_ / "open", "first ");
  const FileDescriptor file(open((folder_ / "open").c_str(), O_WRONLY | O_CLOEXEC));
  const ino_t before = inode_of(folder_ / "open");
  write_output_file("/proc/self/fd/" + std::to_string(file.number()), "second");
  EXPECT_EQ(text_of(folder_ / "open"), "first second");
  EXPECT_EQ(inode_of(folder_ / "open"), before);
}

TEST_F(OutputFile, AFullDeviceIsSaid) {
  try {
    write_output_file("/dev/full", "text");
    FAIL();
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::no_space_on_device);
  }
}

TEST_F(OutputFile, ALinkThatLeadsToItselfIsRefused) {
  fs::create_symlink("link", folder_ / "link");
  EXPECT_THROW(write_output_file(folder_ / "link", "text"), std::system_error);
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
}

}  // namespace
}  // namespace disttf::data
