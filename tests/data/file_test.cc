#include "data/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "data/error.h"
#include "data/output_file.h"
#include "tests/data/scratch.h"
#include "tests/support/thrown.h"

namespace disttf::data {
namespace {

using namespace std::chrono_literals;
using test::Bytes;

class FileTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path path() const { return directory_.path() / "file"; }
  test::ScratchDirectory directory_;
};

// The system_error that `work` throws.
template <typename Work>
std::system_error thrown_by(Work work) {
  try {
    work();
  } catch (const std::system_error& error) {
    return error;
  }
  ADD_FAILURE() << "no exception";
  return std::system_error(std::error_code{});
}

TEST_F(FileTest, ReadsWhatWasWritten) {
  write_file_atomically(path(), test::bytes_of("hello"));
  EXPECT_EQ(read_file(path(), 5), test::bytes_of("hello"));
}

TEST_F(FileTest, ReplacesWhatWasThere) {
  test::write(path(), test::bytes_of("old and longer"));
  write_file_atomically(path(), test::bytes_of("new"));
  EXPECT_EQ(test::read(path()), test::bytes_of("new"));
}

TEST_F(FileTest, LeavesNothingButTheFile) {
  write_file_atomically(path(), test::bytes_of("x"));
  EXPECT_EQ(directory_.names(), std::vector<std::string>{"file"});
}

TEST_F(FileTest, WritesAWorldReadableFile) {
  const struct stat status = write_file_atomically(path(), test::bytes_of("x"));
  EXPECT_EQ(status.st_mode & 0777U, 0644U);
}

TEST_F(FileTest, ReturnsTheStatusOfTheFileUnderItsName) {
  const struct stat status = write_file_atomically(path(), test::bytes_of("12345"));
  struct stat found {};
  ASSERT_EQ(::stat(path().c_str(), &found), 0);
  EXPECT_EQ(status.st_ino, found.st_ino);
  EXPECT_EQ(status.st_size, 5);
  EXPECT_EQ(status.st_ctim.tv_nsec, found.st_ctim.tv_nsec);
}

TEST_F(FileTest, ADirectoryThatTakesNoFilesIsNamed) {
  // /proc accepts no new files, even from root.
  const std::system_error error =
      thrown_by([] { write_file_atomically("/proc/file", test::bytes_of("x")); });
  EXPECT_EQ(std::string(error.what()).find("cannot create a file in /proc: "), 0U) << error.what();
}

// A limit on the file size simulates a disk that becomes full during a write: write() fails in the
// middle with EFBIG, as it does with ENOSPC.
TEST_F(FileTest, ADiskThatFillsUpLeavesTheOldFileAndNoOther) {
  test::write(path(), test::bytes_of("old"));
  EXPECT_TRUE(test::in_child([&] {
    const rlimit limit{.rlim_cur = 100'000, .rlim_max = 100'000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0 || ::signal(SIGXFSZ, SIG_IGN) == SIG_ERR) {
      return false;
    }
    const std::system_error error =
        thrown_by([&] { write_file_atomically(path(), Bytes(1'000'000, 1)); });
    return error.code() == std::errc::file_too_large;
  }));
  EXPECT_EQ(test::read(path()), test::bytes_of("old"));
  EXPECT_EQ(directory_.names(), std::vector<std::string>{"file"});
}

TEST_F(FileTest, ReadersNeverSeeAPartOfAFile) {
  const Bytes first(300'000, 1);
  const Bytes second(200'000, 2);
  test::write(path(), first);
  EXPECT_EQ(test::in_children(4,
                              [&] {
                                for (int i = 0; i < 30; ++i) {
                                  write_file_atomically(path(), i % 2 == 0 ? second : first);
                                  const Bytes found = test::read(path());
                                  if (found != first && found != second) return false;
                                }
                                return true;
                              }),
            4);
  EXPECT_EQ(directory_.names(), std::vector<std::string>{"file"});
}

TEST_F(FileTest, ADirectoryMayBeReplacedByTwoAtOnce) {
  constexpr int kTimes = 2000;
  const auto replace = [this](const std::string& name) {
    for (int each = 0; each < kTimes; ++each) {
      const auto made = directory_.path() / (name + std::to_string(each));
      std::filesystem::create_directory(made);
      test::write(made / "whole", test::bytes_of(name));
      replace_directory(made, path());
    }
  };
  auto other = std::async(std::launch::async, replace, "b");
  replace("a");
  other.get();  // throws what `replace` has thrown
  EXPECT_EQ(directory_.names(), std::vector<std::string>{"file"});
  EXPECT_EQ(test::read(path() / "whole").size(), 1U);
}

TEST_F(FileTest, ADirectoryThatCannotBeReplacedStays) {
  std::filesystem::create_directory(path());
  const std::system_error error =
      thrown_by([&] { replace_directory(directory_.path() / "none", path()); });
  EXPECT_EQ(error.code(), std::errc::no_such_file_or_directory);
  EXPECT_EQ(directory_.names(), std::vector<std::string>{"file"});
}

TEST_F(FileTest, RemovesTemporariesOfKilledWritersOnly) {
  const auto old_one = path().string() + ".disttf-abcdef";
  const auto young_one = path().string() + ".disttf-ghijkl";
  const auto other = directory_.path() / "other.disttf-abcdef";
  for (const std::filesystem::path& each : {std::filesystem::path(old_one), other}) {
    test::write(each, {});
    std::filesystem::last_write_time(each, std::filesystem::file_time_type::clock::now() - 1h);
  }
  test::write(young_one, {});
  remove_abandoned_temporaries(path(), 600s);
  EXPECT_EQ(directory_.names(),
            (std::vector<std::string>{"file.disttf-ghijkl", "other.disttf-abcdef"}));
}

TEST_F(FileTest, RefusesAFileLongerThanAllowed) {
  test::write(path(), test::bytes_of("hello"));
  const std::system_error error = thrown_by([&] { static_cast<void>(read_file(path(), 4)); });
  EXPECT_EQ(error.code(), DataError::kWrongSize);
  EXPECT_EQ(error.what(), path().string() + ": expected at most 4 bytes, found 5: wrong size");
}

TEST_F(FileTest, RefusesADirectory) {
  const auto error = thrown_by([&] { static_cast<void>(read_file(directory_.path(), 4)); });
  EXPECT_EQ(error.code(), std::errc::is_a_directory);
}

TEST_F(FileTest, RefusesAPipeInsteadOfWaitingForAWriter) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  const auto error = thrown_by([&] { static_cast<void>(read_file(path(), 4)); });
  EXPECT_EQ(error.code(), DataError::kNotRegularFile);
}

TEST_F(FileTest, TheFileSystemsTimeLiesBetweenThatOfTwoFilesAndLeavesNone) {
  const auto before = directory_.path() / "before";
  const auto after = directory_.path() / "after";
  test::write(before, {});
  const auto now = file_system_now(directory_.path());
  test::write(after, {});
  EXPECT_LE(std::filesystem::last_write_time(before), now);
  EXPECT_LE(now, std::filesystem::last_write_time(after));
  EXPECT_EQ(directory_.names(), (std::vector<std::string>{"after", "before"}));
}

// A replacement for fsync that fails with kError.
template <int kError>
int sync_says(int /*fd*/) {
  errno = kError;
  return kError == 0 ? 0 : -1;
}

TEST_F(FileTest, ADirectoryThatCannotBeWrittenToTheDiskIsAnError) {
  for (const auto& sync : {&sync_says<EIO>, &sync_says<ENOSPC>, &sync_says<EDQUOT>}) {
    const auto error = thrown_by([&] { sync_directory(directory_.path(), sync); });
    EXPECT_EQ(std::string(error.what()).find("cannot sync " + directory_.path().string()), 0U)
        << error.what();
  }
}

TEST_F(FileTest, AFileSystemThatKnowsNoSuchThingAsSyncingADirectoryIsNone) {
  for (const auto& sync : {&sync_says<0>, &sync_says<EINVAL>, &sync_says<ENOTSUP>,
                           &sync_says<EROFS>, &sync_says<ENOSYS>}) {
    EXPECT_NO_THROW(sync_directory(directory_.path(), sync));
  }
}

TEST_F(FileTest, ASyncThatASignalInterruptsIsRepeated) {
  static int calls = 0;
  calls = 0;
  sync_directory(directory_.path(), [](int) {
    errno = EINTR;
    return ++calls < 3 ? -1 : 0;
  });
  EXPECT_EQ(calls, 3);
}

TEST_F(FileTest, ADirectoryThatIsGoneCannotBeSynced) {
  EXPECT_EQ(thrown_by([&] { sync_directory(directory_.path() / "absent"); }).code(),
            std::errc::no_such_file_or_directory);
}

TEST_F(FileTest, ALockIsHeldByOneAtATime) {
  const DirectoryLock first(directory_.path(), 0ms);
  EXPECT_TRUE(first.is_held());
  const DirectoryLock second(directory_.path(), 0ms);
  EXPECT_FALSE(second.is_held());
}

TEST_F(FileTest, ALockIsFreeAfterItsHolder) {
  { const DirectoryLock first(directory_.path(), 0ms); }
  const DirectoryLock second(directory_.path(), 0ms);
  EXPECT_TRUE(second.is_held());
}

TEST_F(FileTest, ALockOnNothingIsNotHeld) {
  const DirectoryLock lock(directory_.path() / "absent", 1h);
  EXPECT_FALSE(lock.is_held());
}

// The file that a user names for a result.

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
  const auto error = thrown<std::system_error>([&] { write_output_file(fifo, "text"); });
  ASSERT_TRUE(error);
  EXPECT_NE(std::string(error->what()).find("which no process reads"), std::string::npos);
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
  const auto error = thrown<std::system_error>([&] { write_output_file("/dev/full", "text"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), std::errc::no_space_on_device);
}

TEST_F(OutputFile, ALinkThatLeadsToItselfIsRefused) {
  fs::create_symlink("link", folder_ / "link");
  EXPECT_THROW(write_output_file(folder_ / "link", "text"), std::system_error);
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
}

constexpr int kLast = static_cast<int>(DataError::kBadRecords);

TEST(DataError, EveryCodeHasAMessageOfItsOwn) {
  std::set<std::string> messages;
  for (int value = 1; value <= kLast; ++value) {
    const std::string message = data_category().message(value);
    EXPECT_EQ(message.find("unknown"), std::string::npos) << value;
    EXPECT_TRUE(messages.insert(message).second) << value << ": " << message;
  }
}

TEST(DataError, ValuesThatAreNoCodeSaySo) {
  EXPECT_EQ(data_category().message(0), "unknown data error 0");
  EXPECT_EQ(data_category().message(kLast + 1), "unknown data error " + std::to_string(kLast + 1));
}

TEST(DataError, ConvertsToAnErrorCodeThatIsSet) {
  const std::error_code code = DataError::kBadLabel;
  EXPECT_TRUE(code);
  EXPECT_EQ(code, DataError::kBadLabel);
  EXPECT_NE(code, DataError::kWrongSize);
}

}  // namespace
}  // namespace disttf::data
