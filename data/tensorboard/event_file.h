// An append-only file of TensorBoard events: one record after the other.
//
//   length of the data   u64, little-endian
//   masked CRC-32C of these 8 bytes
//   data                 an Event (data/tensorboard/events.h)
//   masked CRC-32C of the data
//
// A reader follows the file while it grows. It retries an incomplete end later, but stops
// permanently at a wrong checksum. Therefore a file is never truncated, replaced or extended in
// advance; a record is one write(); and if the disk accepts only a part, the rest is written before
// anything else. A killed process leaves its own file, which ends with a partial record at worst.
//
// Not thread-safe.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "data/file.h"

namespace disttf::data {

// Returns the bytes written for one event.
[[nodiscard]] std::string event_record(std::string_view event);

// Returns "events.out.tfevents.1700000000.HOST.PID.0". Readers process the files of a directory in
// name order, so the number is the seconds since the epoch, raised above that of every file in
// `names` to be independent of this machine's clock.
[[nodiscard]] std::string event_file_name(std::uint64_t seconds, std::span<const std::string> names,
                                          std::string_view host, std::uint64_t process);
// Returns a name for this process and the current time.
[[nodiscard]] std::string new_event_file_name(std::span<const std::string> names);

class EventFile {
 public:
  // ::write, replaceable for tests.
  using Write = ssize_t (*)(int, const void*, std::size_t);

  // Creates the directory if absent, and a new file in it that begins with the version record.
  // Throws std::system_error with a sentence.
  explicit EventFile(const std::filesystem::path& directory, Write write = &::write);

  // Appends a record. On error the record is absent or partial; the rest of a partial one is
  // written before the next record.
  [[nodiscard]] std::error_code append(std::string_view event);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  // Writes as much of `bytes` as the disk accepts, and removes that part from `bytes`.
  [[nodiscard]] std::error_code write_all(std::string_view& bytes);
  [[nodiscard]] std::error_code write_rest();

  Write write_;
  std::filesystem::path path_;
  FileDescriptor file_;
  std::string rest_;  // unwritten rest of the last record, or of the first
};

}  // namespace disttf::data
