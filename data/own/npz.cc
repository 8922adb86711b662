#include "data/own/npz.h"

#include <sys/stat.h>

#include <cstdint>
#include <system_error>
#include <utility>

#include "data/error.h"
#include "data/file.h"
#include "data/own/row_source.h"
#include "data/own/shown_text.h"

namespace disttf::data {
namespace {

constexpr std::size_t kMostEntries = 1000;

[[noreturn]] void refuse_zip(const std::filesystem::path& path, std::error_code error) {
  throw UnusableData(
      path.string() + ": " +
      (error == DataError::kNotZip ? "it is not a ZIP archive, as .npz are" : error.message()));
}

// An open archive. Pipes are refused, because the directory of an archive is at its end.
struct OpenZip {
  explicit OpenZip(const std::filesystem::path& path) {
    struct stat status {};
    file = open_for_reading(path, status);
    // The source uses the descriptor's number, so `file` is declared before it and outlives it.
    source = zip_source(file.number(), static_cast<std::uint64_t>(status.st_size));
  }
  FileDescriptor file;
  ZipSource source;
};

class ZipStream final : public ByteStream {
 public:
  // Each stream opens the archive itself: the examples and the labels are read in turns, at two
  // positions.
  ZipStream(const std::filesystem::path& path, std::string name)
      : path_(path), name_(std::move(name)), archive_(path), reader_(archive_.source) {
    refuse_if(reader_.open(name_));
  }
  [[nodiscard]] std::size_t read(std::span<std::uint8_t> to) override {
    std::size_t count = 0;
    refuse_if(reader_.read(to, count));
    return count;
  }

 private:
  void refuse_if(std::error_code error) const {
    if (error)
      throw UnusableData(path_.string() + ": " + printable(name_) + ": " + error.message());
  }
  std::filesystem::path path_;
  std::string name_;
  OpenZip archive_;
  ZipMemberReader reader_;
};

class FileStream final : public ByteStream {
 public:
  explicit FileStream(const std::filesystem::path& path) : path_(path) {
    struct stat status {};
    file_ = open_for_reading(path, status);
  }
  [[nodiscard]] std::size_t read(std::span<std::uint8_t> to) override {
    const std::size_t done = read_at(file_, offset_, std::as_writable_bytes(to), path_);
    offset_ += done;
    return done;
  }

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
  std::uint64_t offset_ = 0;
};

}  // namespace

std::vector<ZipMember> zip_members(const std::filesystem::path& path) {
  const OpenZip archive(path);
  std::vector<ZipMember> members;
  if (const std::error_code error = list_zip(archive.source, members)) refuse_zip(path, error);
  // An array archive has a handful of entries; the limit bounds the work for a hostile one.
  if (members.size() > kMostEntries) {
    throw UnusableData(path.string() + ": it has more than " + std::to_string(kMostEntries) +
                       " files");
  }
  return members;
}

std::unique_ptr<ByteStream> open_zip_member(const std::filesystem::path& path,
                                            const std::string& name) {
  return std::make_unique<ZipStream>(path, name);
}

std::unique_ptr<ByteStream> open_file_bytes(const std::filesystem::path& path) {
  return std::make_unique<FileStream>(path);
}

}  // namespace disttf::data
