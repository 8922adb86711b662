// A download under way: "<name>.part" in the directory, renamed to its name once it is proved
// right.
//
// The sink of an http transfer. What a mirror sends is bounded by the size that the file must have,
// so a mirror cannot fill the disk. Not thread-safe; the directory's lock keeps other processes
// off.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <system_error>

#include "data/file.h"
#include "net/http/http_client.h"
#include "roles/download/download.h"

namespace disttf::roles {

class PartFile final : public net::HttpSink {
 public:
  using OnProgress = std::function<void(const DownloadProgress&)>;

  // Opens what an earlier run left, or a new one. Throws DownloadError. `file` is borrowed.
  PartFile(const std::filesystem::path& directory, const RemoteFile& file, OnProgress on_progress);
  // Leaves what there is for a later run to resume; nothing when it is empty.
  ~PartFile() override;
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }
  [[nodiscard]] bool is_full() const noexcept { return size_bytes_ == file_.size_bytes; }
  // From here on the bytes that are there count as inherited: from somebody else than the mirror
  // whose turn it is.
  void mark_inherited() noexcept { inherited_ = size_bytes_ > 0; }
  [[nodiscard]] bool has_inherited_bytes() const noexcept { return inherited_; }

  // Drops all bytes. Throws DownloadError.
  void restart();
  // Whether these are the file's bytes; else one half of a sentence: "has 3 bytes, expected 5".
  [[nodiscard]] bool is_right(std::string& why) const;
  // Syncs and renames. REQUIRES: is_right().
  void publish();

  // Throws DownloadError if a write failed in the last transfer: the disk's fault, not the
  // mirror's. A full disk gets its space back.
  void throw_if_disk_failed();
  // Why on_data() refused: as is_right().
  [[nodiscard]] const std::string& refusal() const noexcept { return refusal_; }

  [[nodiscard]] std::error_code on_header(const net::HttpBodyInfo& info) override;
  [[nodiscard]] std::error_code on_data(std::span<const std::byte> bytes) override;

 private:
  [[nodiscard]] std::error_code refuse(std::string why);
  [[nodiscard]] std::error_code append(std::span<const std::byte> bytes);
  [[nodiscard]] std::error_code truncate() noexcept;
  void report_progress();

  const RemoteFile& file_;
  std::filesystem::path directory_;
  std::filesystem::path path_;
  OnProgress on_progress_;
  data::FileDescriptor descriptor_;
  std::uint64_t size_bytes_ = 0;
  bool published_ = false;  // there is no .part any more
  bool inherited_ = false;
  bool looks_like_page_ = false;  // what it holds begins like HTML
  std::error_code disk_error_;
  std::string refusal_;
  // Of the transfer under way:
  bool start_over_ = false;  // the body begins at byte 0; true until its first byte came
  std::optional<std::uint64_t> announced_bytes_;  // of the whole file
  std::uint64_t start_bytes_ = 0;                 // size when it began
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point reported_;
};

}  // namespace disttf::roles
