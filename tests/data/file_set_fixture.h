// A small set on disk, complete or damaged, for the tests of data/file_set.h.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <system_error>
#include <vector>

#include "data/checksums.h"
#include "data/error.h"
#include "data/file_set.h"
#include "data/idx.h"
#include "tests/data/scratch.h"

namespace disttf::data {

using test::Bytes;

inline std::string hash(const Bytes& bytes) { return sha256_hex(std::as_bytes(std::span(bytes))); }

// A generated set of 30 + 10 rows, so that no test needs the real one; its first 5 training rows
// are for validation.
class FileSetTest : public ::testing::Test {
 protected:
  FileSetTest() {
    set_ = {.name = "Tiny", .checksum = "identity", .files = files_, .validation_rows = 5};
    add(0, "train-images", FileKind::kImages, 30);
    add(1, "train-labels", FileKind::kLabels, 30);
    add(2, "test-images", FileKind::kImages, 10);
    add(3, "test-labels", FileKind::kLabels, 10);
  }

  void add(std::size_t i, std::string_view name, FileKind kind, std::uint32_t rows) {
    const bool images = kind == FileKind::kImages;
    const auto images_start = images_header(rows, {});
    const auto labels_start = labels_header(rows);
    contents_[i] = images ? Bytes(images_start.begin(), images_start.end())
                          : Bytes(labels_start.begin(), labels_start.end());
    for (std::size_t k = 0; k < (images ? rows * 784 : rows); ++k) {
      contents_[i].push_back(static_cast<std::uint8_t>(images ? (k * 7 + i) % 251 : k % 10));
    }
    gz_[i] = test::gzip(contents_[i]);
    hashes_[i] = {hash(contents_[i]), hash(gz_[i])};
    files_[i] = {.name = name,
                 .kind = kind,
                 .is_test = i >= 2,
                 .rows = rows,
                 .sha256 = hashes_[i][0],
                 .gz_bytes = gz_[i].size(),
                 .gz_sha256 = hashes_[i][1]};
  }

  [[nodiscard]] const std::filesystem::path& at() const { return directory_.path(); }
  [[nodiscard]] std::filesystem::path extracted(std::size_t i) const {
    return at() / files_[i].name;
  }
  [[nodiscard]] std::filesystem::path gz(std::size_t i) const { return at() / files_[i].gz_name(); }
  void put_all_gz() const {
    for (std::size_t i = 0; i < 4; ++i) test::write(gz(i), gz_[i]);
  }

  // Opens the set and records extractions and warnings.
  Dataset open(bool replace_wrong = false) { return open_in(at(), replace_wrong); }
  Dataset open_in(const std::filesystem::path& directory, bool replace_wrong = false) {
    extractions_.clear();
    warnings_.clear();
    return open_file_set(
        directory, set_,
        {.replace_wrong = replace_wrong,
         .on_extract = [&](const auto& path) { extractions_.push_back(path.filename()); },
         .on_warning = [&](const std::string& sentence) { warnings_.push_back(sentence); }});
  }
  std::system_error error_of_open() {
    try {
      static_cast<void>(open());
    } catch (const std::system_error& error) {
      return error;
    }
    ADD_FAILURE() << "no exception";
    return std::system_error(std::error_code{});
  }

  // Returns whether the data set has the generated contents.
  [[nodiscard]] bool is_right(const Dataset& dataset) const {
    const auto joined = [](const std::span<const std::uint8_t>& a,
                           const std::span<const std::uint8_t>& b, std::size_t header_bytes) {
      Bytes bytes(header_bytes);
      bytes.insert(bytes.end(), a.begin(), a.end());
      bytes.insert(bytes.end(), b.begin(), b.end());
      return bytes;
    };
    const auto same = [](Bytes found, const Bytes& expected, std::size_t header_bytes) {
      std::copy_n(expected.begin(), header_bytes, found.begin());
      return found == expected;
    };
    const Dataset& d = dataset;
    return same(joined(d.validation.images, d.train.images, 16), contents_[0], 16) &&
           same(joined(d.validation.labels, d.train.labels, 8), contents_[1], 8) &&
           same(joined(d.test.images, {}, 16), contents_[2], 16) &&
           same(joined(d.test.labels, {}, 8), contents_[3], 8);
  }

  // Returns files that are neither a .gz nor a checksum marker nor an extracted file.
  [[nodiscard]] std::vector<std::string> leftovers() const {
    std::vector<std::string> names = directory_.names();
    std::erase_if(names, [&](const std::string& name) {
      return std::any_of(files_.begin(), files_.end(), [&](const SetFile& file) {
        const std::string base(file.name);
        return name == base || name == base + ".gz" || name == base + ".verified";
      });
    });
    return names;
  }

  test::ScratchDirectory directory_;
  std::array<SetFile, 4> files_;
  FileSet set_;  // consists of files_
  std::array<Bytes, 4> contents_;
  std::array<Bytes, 4> gz_;
  std::array<std::array<std::string, 2>, 4> hashes_;  // of the contents, of the .gz
  std::vector<std::string> extractions_;
  std::vector<std::string> warnings_;
};

// --- the normal case ---

}  // namespace disttf::data
