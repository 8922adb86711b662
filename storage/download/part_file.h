// A download in progress: "<name>.part" in the directory, renamed to its name once its checksum is
// verified.
//
// The sink of an HTTP transfer. The expected size bounds it, so a mirror cannot fill the disk. Not
// thread-safe; the directory's lock excludes other processes.
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
#include "storage/download/download.h"

namespace disttf::roles {

class PartFile final : public net::HttpSink {
 public:
  using OnProgress = std::function<void(const DownloadProgress&)>;

  // Opens the part of an earlier run, or a new one. Throws DownloadError. `file` is borrowed.
  PartFile(const std::filesystem::path& directory, const RemoteFile& file, OnProgress on_progress);
  // Keeps the part for a later run to resume; removes it if it is empty.
  ~PartFile() override;
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }
  [[nodiscard]] bool is_full() const noexcept { return size_bytes_ == file_.size_bytes; }
  // Counts the bytes so far as inherited: they may come from another mirror than the current one.
  void mark_inherited() noexcept { inherited_ = size_bytes_ > 0; }
  [[nodiscard]] bool has_inherited_bytes() const noexcept { return inherited_; }

  // Drops all bytes. Throws DownloadError.
  void restart();
  // Whether the bytes are the file's; else `why` is set to a predicate: "has 3 bytes, expected 5".
  [[nodiscard]] bool is_right(std::string& why) const;
  // Syncs the part and renames it to its final name. REQUIRES: is_right().
  void publish();

  // Throws DownloadError if a write failed in the last transfer: an error of the disk, not of the
  // mirror. If the disk is full, removes the part.
  void throw_if_disk_failed();
  // Why on_data() refused: a predicate as in is_right().
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
  bool published_ = false;  // the .part has been renamed
  bool inherited_ = false;
  bool looks_like_page_ = false;  // its contents begin like HTML
  std::error_code disk_error_;
  std::string refusal_;
  // State of the current transfer:
  bool start_over_ = false;  // the body begins at byte 0; reset by its first byte
  std::optional<std::uint64_t> announced_bytes_;  // of the whole file
  std::uint64_t start_bytes_ = 0;                 // size when the transfer began
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point reported_;
};

}  // namespace disttf::roles
