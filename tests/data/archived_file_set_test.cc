// Sets whose files come in one archive, like EMNIST's and CIFAR-10's. The real archives have 0.5
// and 0.2 GB, so the tests create small ones in the same form.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <string>
#include <system_error>

#include "data/checksums.h"
#include "data/cifar10.h"
#include "data/emnist.h"
#include "data/error.h"
#include "data/file_set.h"
#include "data/idx.h"
#include "data/records.h"
#include "tests/data/archives.h"
#include "tests/data/scratch.h"

namespace disttf::data {
namespace {

using test::Bytes;

// Shared by the sets below: a directory with the archive, the open call, and its messages.
class ArchivedFileSetTest : public ::testing::Test {
 protected:
  void put_archive(ArchiveKind kind, const std::vector<test::PackedFile>& members) {
    const Bytes packed =
        kind == ArchiveKind::kZip ? test::zip(members) : test::gzip(test::tar(members));
    sha256_ = sha256_hex(std::as_bytes(std::span(packed)));
    archive_ = {.name = "pack", .kind = kind, .size_bytes = packed.size(), .sha256 = sha256_};
    test::write(at() / "pack", packed);
  }
  [[nodiscard]] const std::filesystem::path& at() const { return directory_.path(); }

  Dataset open(bool replace_wrong = false) {
    extractions_.clear();
    warnings_.clear();
    return open_file_set(
        at(), set_,
        {.replace_wrong = replace_wrong,
         .on_extract = [&](const auto& path) { extractions_.push_back(path.filename()); },
         .on_warning = [&](const std::string& sentence) { warnings_.push_back(sentence); }});
  }
  std::string refusal() {
    return test::refusal_of([&] { static_cast<void>(open()); }, at());
  }

  test::ScratchDirectory directory_;
  std::string sha256_;
  Archive archive_;
  FileSet set_;
  std::vector<std::string> extractions_;
  std::vector<std::string> warnings_;
};

// 6 + 2 images of 28x28, with labels a (1) to c (3).
class EmnistLikeTest : public ArchivedFileSetTest {
 protected:
  EmnistLikeTest() {
    add(0, "letters-train-images", FileKind::kImages, {1, 2, 3, 3, 2, 1});
    add(1, "letters-train-labels", FileKind::kLabels, {1, 2, 3, 3, 2, 1});
    add(2, "letters-test-images", FileKind::kImages, {2, 1});
    add(3, "letters-test-labels", FileKind::kLabels, {2, 1});
    pack();
    set_ = {.name = "Letters",
            .checksum = {},
            .files = files_,
            .classes = 3,
            .first_label = 1,
            .has_columns_first = true,
            .class_names = kNames,
            .validation_rows = 2};
  }

  void add(std::size_t i, std::string_view name, FileKind kind, const Bytes& labels) {
    const auto rows = static_cast<std::uint32_t>(labels.size());
    names_[i] = "gzip/" + std::string(name) + ".gz";
    contents_[i] = kind == FileKind::kImages ? images_header(rows, {}) : labels_header(rows);
    for (std::uint32_t row = 0; row < rows; ++row) {
      if (kind == FileKind::kLabels) contents_[i].push_back(labels[row]);
      for (std::size_t k = 0; kind == FileKind::kImages && k < 784; ++k) {
        contents_[i].push_back(lying_pixel(row, k));
      }
    }
    files_[i] = {.name = name,
                 .kind = kind,
                 .is_test = i >= 2,
                 .rows = rows,
                 .archive = &archive_,
                 .member = names_[i]};
  }
  void pack() {
    std::vector<test::PackedFile> members;
    for (std::size_t i = 0; i < 4; ++i) members.push_back({names_[i], test::gzip(contents_[i])});
    put_archive(ArchiveKind::kZip, members);
  }

  // Returns the k-th byte of an image in the file, which stores the columns one after the other.
  static std::uint8_t lying_pixel(std::size_t row, std::size_t k) {
    return upright_pixel(row, k % 28, k / 28);
  }
  static std::uint8_t upright_pixel(std::size_t row, std::size_t y, std::size_t x) {
    return static_cast<std::uint8_t>(row * 50 + y * 3 + x);
  }
  // Returns whether these are the upright images from row `first` on.
  static bool are_upright(std::span<const std::uint8_t> images, std::size_t first) {
    for (std::size_t i = 0; i < images.size(); ++i) {
      const std::size_t k = i % 784;
      if (images[i] != upright_pixel(first + i / 784, k / 28, k % 28)) return false;
    }
    return true;
  }
  static bool are(std::span<const std::uint8_t> found, const Bytes& expected) {
    return std::ranges::equal(found, expected);
  }
  static bool is_right(const Dataset& dataset) {
    return are(dataset.validation.labels, {0, 1}) && are(dataset.train.labels, {2, 2, 1, 0}) &&
           are(dataset.test.labels, {1, 0}) && dataset.train.images.size() == 4 * 784U &&
           are_upright(dataset.validation.images, 0) && are_upright(dataset.train.images, 2) &&
           are_upright(dataset.test.images, 0);
  }

  static constexpr std::array<std::string_view, 3> kNames{"a", "b", "c"};
  std::array<std::string, 4> names_;
  std::array<Bytes, 4> contents_;
  std::array<SetFile, 4> files_;
};

TEST_F(EmnistLikeTest, HasUprightImagesAndLabelsFromZero) {
  EXPECT_TRUE(is_right(open()));
  EXPECT_EQ(extractions_, std::vector<std::string>{"pack"}) << "once for all files";
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(EmnistLikeTest, ExtractsTheFilesAsTheyAreAndNeedsTheArchiveNoMore) {
  static_cast<void>(open());
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(test::read(at() / files_[i].name), contents_[i]);
  std::filesystem::remove(at() / "pack");
  EXPECT_TRUE(provides(at(), set_));
  EXPECT_TRUE(is_right(open()));
  EXPECT_TRUE(extractions_.empty());
}

TEST_F(EmnistLikeTest, ItsIdentityIsTheHashOfItsFilesAsTheyAre) {
  Sha256 identity;
  for (const Bytes& bytes : contents_) identity.update(std::as_bytes(std::span(bytes)));
  const std::string expected = identity.hex();
  EXPECT_EQ(open().checksum, expected);
  EXPECT_EQ(open().checksum, expected) << "from what was extracted";
}

TEST_F(EmnistLikeTest, IsProvidedByTheArchiveAlone) {
  EXPECT_TRUE(provides(at(), set_));
  std::filesystem::remove(at() / "pack");
  EXPECT_FALSE(provides(at(), set_));
  EXPECT_EQ(check_file(at(), files_[0]).state, FileState::kAbsent);
}

TEST_F(EmnistLikeTest, IsRefusedWithAWrongArchive) {
  Bytes flipped = test::read(at() / "pack");
  flipped[60] ^= 1;
  test::write(at() / "pack", flipped);
  EXPECT_EQ(refusal(), "pack: expected SHA-256 " + sha256_ + ", found " +
                           sha256_hex(std::as_bytes(std::span(flipped))) + ": wrong checksum");
}

// The SHA-256 of the extracted files is unknown, so files from another extraction are not used.
TEST_F(EmnistLikeTest, DoesNotBelieveFilesThatAnotherUserExtracted) {
  Bytes other = contents_[1];
  other.back() = 3;
  test::write(at() / files_[1].name, other);
  EXPECT_TRUE(is_right(open()));
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("letters-train-labels: expected it with the checksum marker"),
            std::string::npos)
      << warnings_[0];
  std::filesystem::remove(at() / "pack");
  EXPECT_EQ(check_file(at(), files_[1]).error, DataError::kNotVerified);
  EXPECT_NE(refusal().find("letters-train-labels: expected it with the checksum marker"),
            std::string::npos)
      << refusal();
}

TEST_F(EmnistLikeTest, PutsRightContentsInThePlaceOfWrongOnes) {
  test::write(at() / files_[0].name, test::noise(contents_[0].size(), 1));
  EXPECT_TRUE(is_right(open(true)));
  EXPECT_EQ(test::read(at() / files_[0].name), contents_[0]);
}

TEST_F(EmnistLikeTest, RefusesLabelsBelowTheFirstAndAboveTheLast) {
  for (const int label : {0, 4}) {
    contents_[3][8] = static_cast<std::uint8_t>(label);
    pack();
    EXPECT_EQ(refusal(), "letters-test-labels: expected labels 1 to 3, found " +
                             std::to_string(label) + ": a label is not one of the classes");
    std::filesystem::remove(at() / files_[3].name);
  }
}

TEST_F(EmnistLikeTest, RefusesAFileOfOtherRows) {
  files_[2].rows = 3;
  EXPECT_NE(refusal().find("letters-test-images.gz: expected 2368 bytes, found 1584"),
            std::string::npos)
      << refusal();
}

TEST_F(EmnistLikeTest, SeveralTasksAtOnceGetTheSame) {
  EXPECT_EQ(test::in_children(4, [&] { return is_right(open()); }), 4);
  EXPECT_EQ(test::read(at() / files_[0].name), contents_[0]);
}

// Images of 2x2 in three colours: two training files of 3 rows, one test file of 2.
class CifarLikeTest : public ArchivedFileSetTest {
 protected:
  static constexpr ImageShape kShape{.height = 2, .width = 2, .channels = 3};

  CifarLikeTest() {
    add(0, "batches/data_1.bin", {0, 1, 2});
    add(1, "batches/data_2.bin", {3, 4, 5});
    add(2, "batches/test.bin", {6, 7});
    files_[2].is_test = true;
    put_archive(ArchiveKind::kTarGz, {{"batches/readme.html", test::bytes_of("<html>")},
                                      {names_[2], contents_[2]},
                                      {names_[0], contents_[0]},
                                      {names_[1], contents_[1]}});
    set_ = {.name = "Photographs", .checksum = {}, .files = files_, .validation_rows = 2};
  }

  // The bytes of an image start at 12 times its label and increase by one.
  void add(std::size_t i, std::string name, const Bytes& labels) {
    names_[i] = std::move(name);
    for (const std::uint8_t label : labels) {
      contents_[i].push_back(label);
      for (std::size_t k = 0; k < kShape.size(); ++k) {
        contents_[i].push_back(static_cast<std::uint8_t>(label * 12U + k));
      }
    }
    files_[i] = {.name = names_[i],
                 .kind = FileKind::kRecords,
                 .rows = static_cast<std::uint32_t>(labels.size()),
                 .shape = kShape,
                 .archive = &archive_,
                 .member = names_[i]};
  }
  // Channels last: the first pixel's red, green and blue are the image's first, fifth and ninth
  // byte.
  static bool are_images(std::span<const std::uint8_t> images, std::size_t first_label) {
    for (std::size_t i = 0; i < images.size(); ++i) {
      const std::size_t k = i % 12;
      const std::size_t expected = (first_label + i / 12) * 12 + k % 3 * 4 + k / 3;
      if (images[i] != expected) return false;
    }
    return true;
  }
  static bool are_labels(std::span<const std::uint8_t> labels, std::size_t first,
                         std::size_t count) {
    Bytes expected(count);
    std::iota(expected.begin(), expected.end(), static_cast<std::uint8_t>(first));
    return std::ranges::equal(labels, expected);
  }
  static bool is_right(const Dataset& dataset) {
    return are_labels(dataset.validation.labels, 0, 2) && are_labels(dataset.train.labels, 2, 4) &&
           are_labels(dataset.test.labels, 6, 2) && dataset.train.images.size() == 48 &&
           are_images(dataset.validation.images, 0) && are_images(dataset.train.images, 2) &&
           are_images(dataset.test.images, 6);
  }

  std::array<std::string, 3> names_;
  std::array<Bytes, 3> contents_;
  std::array<SetFile, 3> files_;
};

TEST_F(CifarLikeTest, JoinsTheFilesInTheirOrder) {
  const Dataset dataset = open();
  EXPECT_TRUE(is_right(dataset));
  EXPECT_EQ(dataset.shape, kShape);
  EXPECT_EQ(extractions_, std::vector<std::string>{"pack"});
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(CifarLikeTest, ExtractsTheFilesToTheirFolderAndOpensThemAgain) {
  static_cast<void>(open());
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(test::read(at() / names_[i]), contents_[i]);
  std::filesystem::remove(at() / "pack");
  EXPECT_TRUE(is_right(open()));
}

// The state after `tar -x`, for files whose SHA-256 is unknown: the archive is needed to replace
// them.
TEST_F(CifarLikeTest, AFolderThatAnotherUserExtractedNeedsTheArchive) {
  std::filesystem::create_directory(at() / "batches");
  for (std::size_t i = 0; i < 3; ++i) test::write(at() / names_[i], contents_[i]);
  EXPECT_TRUE(is_right(open(true)));
  EXPECT_TRUE(std::filesystem::exists(at() / (names_[0] + ".verified")));
  std::filesystem::remove(at() / "pack");
  EXPECT_TRUE(is_right(open(true)));
  std::filesystem::remove(at() / (names_[0] + ".verified"));
  EXPECT_NE(refusal().find("data_1.bin: expected it with the checksum marker"), std::string::npos)
      << refusal();
}

TEST_F(CifarLikeTest, IsHeldInMemoryWhereTheFolderCannotBeWritten) {
  std::filesystem::create_symlink("nowhere", at() / "batches");
  EXPECT_TRUE(is_right(open()));
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("the data set is held in memory"), std::string::npos) << warnings_[0];
}

TEST_F(CifarLikeTest, RefusesALabelThatIsNoClass) {
  set_.classes = 7;
  EXPECT_EQ(refusal(),
            "batches/test.bin: expected labels 0 to 6, found 7 in row 1: a label is not one of the "
            "classes");
}

// The sizes that the data set's own documentation gives.
TEST(Emnist, ItsFilesHaveTheSizesOfTheirFormat) {
  for (const FileSet* set : {&emnist_byclass(), &emnist_bymerge(), &emnist_balanced(),
                             &emnist_letters(), &emnist_digits(), &emnist_mnist()}) {
    ASSERT_EQ(set->files.size(), 4U) << set->name;
    EXPECT_EQ(set->class_names.size(), set->classes) << set->name;
    for (std::size_t i = 0; i < 4; ++i) {
      const SetFile& file = set->files[i];
      EXPECT_EQ(file.size_bytes(), i % 2 == 0 ? 16U + file.rows * 784U : 8U + file.rows)
          << file.name;
      EXPECT_EQ(file.member, "gzip/" + std::string(file.name) + ".gz");
      EXPECT_EQ(file.is_test, i >= 2) << file.name;
      EXPECT_NE(file.name.find(i >= 2 ? "-test-" : "-train-"), std::string_view::npos);
    }
  }
  EXPECT_EQ(emnist_letters().files[0].name, "emnist-letters-train-images-idx3-ubyte");
  EXPECT_EQ(emnist_letters().class_names.front(), "a");
  EXPECT_EQ(emnist_letters().class_names.back(), "z");
  EXPECT_EQ(emnist_byclass().class_names[36], "a");
  EXPECT_EQ(emnist_balanced().class_names[38], "d") << "c and C are one";
}

TEST(Cifar10, ItsFilesHaveTheSizesOfTheirFormat) {
  ASSERT_EQ(cifar10().files.size(), 6U);
  for (const SetFile& file : cifar10().files) EXPECT_EQ(file.size_bytes(), 30'730'000U);
  EXPECT_TRUE(cifar10().files[5].is_test);
  EXPECT_EQ(cifar10().shape(), (ImageShape{.height = 32, .width = 32, .channels = 3}));
}

constexpr ImageShape kTiny{.height = 1, .width = 2, .channels = 3};

struct ParsedRecords {
  std::error_code error;
  std::string detail;
  Bytes images{99};
  Bytes labels{98};
};

ParsedRecords records_of(const Bytes& bytes, const ImageShape& shape = kTiny) {
  ParsedRecords result;
  result.error = parse_records(bytes, shape, 10, result.images, result.labels, result.detail);
  return result;
}

// The planes of two pixels, red, green and blue, are 11 12, 21 22, 31 32.
TEST(Records, PutChannelsLastBehindWhatThereIs) {
  const ParsedRecords parsed = records_of({3, 11, 12, 21, 22, 31, 32, 9, 41, 42, 51, 52, 61, 62});
  ASSERT_FALSE(parsed.error) << parsed.detail;
  EXPECT_EQ(parsed.images, (Bytes{99, 11, 21, 31, 12, 22, 32, 41, 51, 61, 42, 52, 62}));
  EXPECT_EQ(parsed.labels, (Bytes{98, 3, 9}));
}

TEST(Records, KeepTheOrderOfRows) {
  const ParsedRecords parsed =
      records_of({0, 1, 2, 3, 4}, {.height = 2, .width = 2, .channels = 1});
  ASSERT_FALSE(parsed.error) << parsed.detail;
  EXPECT_EQ(parsed.images, (Bytes{99, 1, 2, 3, 4}));
}

TEST(Records, RefuseALabelThatIsNoClass) {
  Bytes bytes(14);
  bytes[7] = 10;
  const ParsedRecords parsed = records_of(bytes);
  EXPECT_EQ(parsed.error, DataError::kBadLabel);
  EXPECT_EQ(parsed.detail, "expected labels 0 to 9, found 10 in row 1");
  EXPECT_EQ(parsed.images, Bytes{99});
  EXPECT_EQ(parsed.labels, Bytes{98});
}

TEST(Records, RefuseAPartOfOne) {
  const ParsedRecords parsed = records_of(Bytes(13));
  EXPECT_EQ(parsed.error, DataError::kBadRecords);
  EXPECT_EQ(parsed.detail, "expected records of 7 bytes, found 6 bytes after the last one");
  EXPECT_EQ(parsed.images, Bytes{99});
}

}  // namespace
}  // namespace disttf::data
