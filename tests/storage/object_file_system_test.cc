#include "storage/store/core/object_file_system.h"

#include <gmock/gmock.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/checksums.h"
#include "storage/store/core/store_file_system.h"
#include "storage/store/shell/copy_files.h"
#include "tests/data/scratch.h"
#include "tests/storage/memory_store.h"

namespace disttf::roles {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

class ObjectFileSystemTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    data::write_durably(files_, path, std::span(&bytes, 1));
  }
  std::string read(const std::string& path) {
    const auto bytes = data::read_file(files_, path, 1U << 30U);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::vector<std::string> names(const std::string& path) {
    std::error_code error;
    return files_.names_in(path, error);
  }
  std::vector<std::string> keys() const {
    std::vector<std::string> keys;
    for (const auto& [key, bytes] : store_->objects) keys.push_back(key);
    return keys;
  }

  const std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  ObjectFileSystem files_{store_, "s3://bucket"};
};

TEST_F(ObjectFileSystemTest, AFileIsAnObject) {
  write("s3://bucket/run/a", "text");
  EXPECT_THAT(keys(), ElementsAre("run/a"));
  EXPECT_EQ(read("s3://bucket/run/a"), "text");
  EXPECT_THAT(names("s3://bucket/run/"), ElementsAre("a"));
}

TEST_F(ObjectFileSystemTest, ALargeFileIsReadToItsEndAtOneGo) {
  std::string text(2 * kReadAtOnce + 1, 'x');
  for (std::size_t i = 0; i < text.size(); i += 1000) text[i] = static_cast<char>(i);
  write("s3://bucket/a", text);
  EXPECT_TRUE(read("s3://bucket/a") == text);
}

// In one piece, and in several.
TEST_F(ObjectFileSystemTest, BytesThatHaveAnotherChecksumThanTheStoreSaysAreRefused) {
  for (const std::size_t size : {std::size_t{10}, 2 * kReadAtOnce + 1}) {
    const std::string text(size, 'x');
    write("s3://bucket/a", text);
    store_->sums["a"] = data::crc32c(text);
    EXPECT_TRUE(read("s3://bucket/a") == text) << size;
    store_->objects["a"].back() = 'y';
    EXPECT_THROW(static_cast<void>(read("s3://bucket/a")), std::system_error);
    store_->sums.clear();
    EXPECT_EQ(read("s3://bucket/a").size(), size);
  }
}

TEST_F(ObjectFileSystemTest, AKeyThatWouldLeadOutOfAFolderIsNotSeen) {
  write("s3://bucket/run/a", "text");
  for (const char* key : {"run/../b", "run/./c", "run/..", "run//d", "../e"}) {
    store_->objects[key] = store_->objects["run/a"];
  }
  EXPECT_THAT(names("s3://bucket/run"), ElementsAre("a"));
  EXPECT_THAT(names("s3://bucket"), ElementsAre("run"));
}

TEST_F(ObjectFileSystemTest, WhatIsNotThereIsSaidToBeNotThere) {
  std::error_code error;
  EXPECT_THAT(files_.names_in("s3://bucket/run", error), ElementsAre());
  EXPECT_EQ(error, std::errc::no_such_file_or_directory);
  static_cast<void>(files_.size_of("s3://bucket/run", error));
  EXPECT_EQ(error, std::errc::no_such_file_or_directory);
  EXPECT_THROW(static_cast<void>(files_.open("s3://bucket/run")), std::system_error);
  EXPECT_EQ(files_.rename("s3://bucket/run", "s3://bucket/b"),
            std::errc::no_such_file_or_directory);
  EXPECT_FALSE(files_.remove("s3://bucket/run"));
}

TEST_F(ObjectFileSystemTest, ARenamedDirectoryIsFoundUnderItsNewNameAlone) {
  write("s3://bucket/run/partial/a", "text");
  ASSERT_FALSE(files_.rename("s3://bucket/run/partial", "s3://bucket/run/whole"));
  EXPECT_THAT(names("s3://bucket/run"), ElementsAre("whole"));
  EXPECT_THAT(names("s3://bucket/run/whole"), ElementsAre("a"));
  EXPECT_EQ(read("s3://bucket/run/whole/a"), "text");
  EXPECT_THAT(keys(), ElementsAre("run/partial/a", "run/whole.disttf-directory"));
}

TEST_F(ObjectFileSystemTest, ANameIsGivenOnce) {
  write("s3://bucket/run/one/a", "1");
  write("s3://bucket/run/two/a", "2");
  ASSERT_FALSE(files_.rename("s3://bucket/run/one", "s3://bucket/run/whole"));
  const std::error_code error = files_.rename("s3://bucket/run/two", "s3://bucket/run/whole");
  EXPECT_TRUE(error == std::errc::directory_not_empty || error == std::errc::file_exists);
  EXPECT_EQ(read("s3://bucket/run/whole/a"), "1");
}

// Between the look and the request another may have taken the name.
TEST_F(ObjectFileSystemTest, OfTwoWhoTakeANameAtOnceOneGetsIt) {
  write("s3://bucket/run/one/a", "1");
  write("s3://bucket/run/two/a", "2");
  bool has_raced = false;
  store_->before = [&](std::size_t) {
    if (std::exchange(has_raced, true)) return;
    store_->before = nullptr;
    ASSERT_FALSE(files_.rename("s3://bucket/run/two", "s3://bucket/run/whole"));
  };
  EXPECT_EQ(files_.rename("s3://bucket/run/one", "s3://bucket/run/whole"),
            std::errc::directory_not_empty);
  EXPECT_EQ(read("s3://bucket/run/whole/a"), "2");
}

TEST_F(ObjectFileSystemTest, ANamedDirectoryIsRenamedAgainAndRemoved) {
  write("s3://bucket/run/one/a", "1");
  write("s3://bucket/run/one/inner/b", "2");
  ASSERT_FALSE(files_.rename("s3://bucket/run/one", "s3://bucket/run/two"));
  ASSERT_FALSE(files_.rename("s3://bucket/run/two", "s3://bucket/run/three"));
  EXPECT_THAT(names("s3://bucket/run"), ElementsAre("three"));
  EXPECT_EQ(read("s3://bucket/run/three/inner/b"), "2");
  EXPECT_EQ(files_.remove("s3://bucket/run/three"), std::errc::directory_not_empty);
  EXPECT_FALSE(data::remove_all(files_, "s3://bucket/run/three"));
  EXPECT_THAT(keys(), ElementsAre());
}

TEST_F(ObjectFileSystemTest, WhatHasANameIsNotRemovedUnderItsOldOne) {
  write("s3://bucket/run/partial/a", "text");
  ASSERT_FALSE(files_.rename("s3://bucket/run/partial", "s3://bucket/run/whole"));
  EXPECT_FALSE(data::remove_all(files_, "s3://bucket/run/partial"));
  EXPECT_EQ(read("s3://bucket/run/whole/a"), "text");
}

TEST_F(ObjectFileSystemTest, ADirectoryGoesBackToItsFirstName) {
  write("s3://bucket/run/one/a", "1");
  ASSERT_FALSE(files_.rename("s3://bucket/run/one", "s3://bucket/run/two"));
  ASSERT_FALSE(files_.rename("s3://bucket/run/two", "s3://bucket/run/one"));
  EXPECT_THAT(keys(), ElementsAre("run/one/a"));
}

TEST_F(ObjectFileSystemTest, ANameDoesNotLeadIntoAnotherDirectory) {
  write("s3://bucket/run/one/a", "1");
  EXPECT_EQ(files_.rename("s3://bucket/run/one", "s3://bucket/other/one"),
            std::errc::cross_device_link);
}

TEST_F(ObjectFileSystemTest, AnotherNameIsACopy) {
  write("s3://bucket/run/a", "text");
  ASSERT_FALSE(files_.link("s3://bucket/run/a", "s3://bucket/run/best/a"));
  EXPECT_EQ(read("s3://bucket/run/best/a"), "text");
  EXPECT_EQ(files_.link("s3://bucket/run/a", "s3://bucket/run/best/a"), std::errc::file_exists);
}

TEST_F(ObjectFileSystemTest, AFileIsRenamedOverAnother) {
  write("s3://bucket/a", "new");
  write("s3://bucket/b", "old");
  ASSERT_FALSE(files_.rename("s3://bucket/a", "s3://bucket/b"));
  EXPECT_THAT(keys(), ElementsAre("b"));
  EXPECT_EQ(read("s3://bucket/b"), "new");
}

TEST_F(ObjectFileSystemTest, ALargeFileGoesInPartsAndComesInWindows) {
  std::string large(2 * kPartBytes + 12'345, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31 + i / 4096);
  write("s3://bucket/large", large);
  EXPECT_TRUE(store_->objects.at("large") == large);
  EXPECT_TRUE(read("s3://bucket/large").substr(0, 100) == large.substr(0, 100));
  const auto file = files_.open("s3://bucket/large");
  std::string found;
  std::vector<std::byte> buffer(1'000'003);
  while (const std::size_t count = file->read(found.size(), buffer)) {
    found.append(reinterpret_cast<const char*>(buffer.data()), count);
  }
  EXPECT_TRUE(found == large);
}

// A name of the same beginning is not the directory.
TEST_F(ObjectFileSystemTest, SiblingsOfTheSameBeginningAreLeftAlone) {
  write("s3://bucket/run/checkpoint-5/a", "1");
  write("s3://bucket/run/checkpoint-50/a", "2");
  EXPECT_FALSE(data::remove_all(files_, "s3://bucket/run/checkpoint-5"));
  EXPECT_THAT(keys(), ElementsAre("run/checkpoint-50/a"));
}

TEST_F(ObjectFileSystemTest, AStoreThatIsAwayIsNotAnEmptyOne) {
  write("s3://bucket/run/a", "text");
  store_->before = [](std::size_t) { throw std::system_error(StoreError::kAway, "test"); };
  std::error_code error;
  EXPECT_THAT(files_.names_in("s3://bucket/run", error), ElementsAre());
  EXPECT_EQ(error, std::errc::resource_unavailable_try_again);
}

TEST_F(ObjectFileSystemTest, AForeignObjectIsNoName) {
  store_->objects["run/whole.disttf-directory"] = "something else";
  std::error_code error;
  static_cast<void>(files_.names_in("s3://bucket/run/whole", error));
  EXPECT_EQ(error, StoreError::kBadAnswer);
}

TEST(DirectoryName, IsReadBackAndNothingElseIsOne) {
  EXPECT_EQ(directory_from(directory_text("a.partial-1")), "a.partial-1");
  for (const char* text : {"", "disttf directory 1\n", "disttf directory 1\na/b\n",
                           "disttf directory 1\n..\n", "disttf directory 1\na", "a\n"}) {
    EXPECT_EQ(directory_from(text), std::nullopt) << text;
  }
}

// A store's file that is read in larger pieces than requested.

std::string read(const ReadAhead& file, std::uint64_t offset, std::size_t bytes) {
  std::vector<std::byte> to(bytes);
  to.resize(file.read(offset, to));
  return {reinterpret_cast<const char*>(to.data()), to.size()};
}

TEST(ReadAhead, AsksOnceForBytesThatFollowEachOther) {
  int requests = 0;
  const ReadAhead file(6, "ab", [&](std::uint64_t offset, std::span<std::byte> to) {
    ++requests;
    for (std::size_t at = 0; at < to.size(); ++at) {
      to[at] = static_cast<std::byte>('a' + offset + at);
    }
    return to.size();
  });
  EXPECT_EQ(read(file, 0, 2), "ab");
  EXPECT_EQ(requests, 0);
  EXPECT_EQ(read(file, 2, 2), "cd");
  EXPECT_EQ(read(file, 4, 9), "ef");
  EXPECT_EQ(requests, 1);
  EXPECT_EQ(read(file, 6, 1), "");
}

// The caller may try again: it must not get what the memory held before.
TEST(ReadAhead, AfterAFailedRequestTheBytesAreRequestedAgain) {
  bool fails = true;
  const ReadAhead file(4, "",
                       [&](std::uint64_t /*offset*/, std::span<std::byte> to) -> std::size_t {
                         if (fails) throw std::runtime_error("the store is unavailable");
                         to[0] = static_cast<std::byte>('x');
                         return 1;
                       });
  EXPECT_THROW(static_cast<void>(read(file, 0, 1)), std::runtime_error);
  fails = false;
  EXPECT_EQ(read(file, 0, 1), "x");
}

// `disttf cp` between places of this machine.

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
