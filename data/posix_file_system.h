// The file system of this machine; data/file_system.h describes the operations.
#pragma once

#include <string>
#include <string_view>

#include "data/file.h"
#include "data/file_system.h"

namespace disttf::data {

// Marks a temporary file, "NAME.disttf-XXXXXX". It is in the directory of NAME, because a rename
// cannot cross file systems, and no reader uses such a name.
inline constexpr std::string_view kTemporaryMark = ".disttf-";

class PosixNewFile final : public NewFile {
 public:
  static constexpr unsigned kExecution = 0111;

  explicit PosixNewFile(const std::filesystem::path& target);
  ~PosixNewFile() override;
  void write(std::span<const std::uint8_t> bytes) override;
  void allow_execution() noexcept override { mode_ |= kExecution; }
  void sync() override;
  void take_name() override;
  [[nodiscard]] int number() const noexcept { return file_.number(); }  // of its descriptor

 private:
  const std::filesystem::path target_;
  std::string path_;  // empty: already renamed
  FileDescriptor file_;
  // mkostemp permits access only to its user, but tasks under other users read the files too.
  unsigned mode_ = 0644;
};

// Has no state: all objects are equivalent.
class PosixFileSystem final : public FileSystem {
 public:
  [[nodiscard]] std::unique_ptr<NewFile> create(const Path& target) override;
  [[nodiscard]] std::unique_ptr<OpenFile> open(const Path& path) override;
  [[nodiscard]] std::uint64_t size_of(const Path& path, std::error_code& error) override;
  [[nodiscard]] std::filesystem::file_time_type last_write(const Path& path) override;
  [[nodiscard]] std::filesystem::file_time_type now(const Path& directory) override;
  [[nodiscard]] std::vector<std::string> names_in(const Path& directory,
                                                  std::error_code& error) override;
  bool create_directory(const Path& path, std::error_code& error) override;
  std::error_code rename(const Path& from, const Path& to) override;
  std::error_code link(const Path& from, const Path& to) override;
  std::error_code remove(const Path& path) override;
  void sync_directory(const Path& directory) override;
};

}  // namespace disttf::data
