// A file of events, for TensorBoard: records, one behind the other, only ever appended to.
//
//   length of the data   u64, little-endian
//   masked CRC-32C of these 8 bytes
//   data                 an Event (data/tensorboard/events.h)
//   masked CRC-32C of the data
//
// A reader follows the file while it grows. An end that is not whole yet it tries again later;
// where a checksum is wrong it never reads on. So a file is never cut, replaced or made larger in
// advance, a record is one write(), and of one that the disk did not take whole the rest is written
// before anything else is. What a process that was killed leaves behind is a file of its own, which
// ends with a part of a record at worst.
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

// What is written for one event.
[[nodiscard]] std::string event_record(std::string_view event);

// "events.out.tfevents.1700000000.HOST.PID.0": readers take the files of a directory in the order
// of their names, so the number is the seconds since the epoch, and above that of every file in
// `names`, whatever this machine's clock says.
[[nodiscard]] std::string event_file_name(std::uint64_t seconds, std::span<const std::string> names,
                                          std::string_view host, std::uint64_t process);
// One of this process, now.
[[nodiscard]] std::string new_event_file_name(std::span<const std::string> names);

class EventFile {
 public:
  // ::write, but for tests.
  using Write = ssize_t (*)(int, const void*, std::size_t);

  // Makes the directory where it is missing, and in it a new file, which begins with its version.
  // Throws std::system_error with a sentence.
  explicit EventFile(const std::filesystem::path& directory, Write write = &::write);

  // Adds a record. An error: it is not there; or not all of it, and the rest goes before the next.
  [[nodiscard]] std::error_code append(std::string_view event);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  // As much of `bytes` as the disk takes; removes it from there.
  [[nodiscard]] std::error_code write_all(std::string_view& bytes);
  [[nodiscard]] std::error_code write_rest();

  Write write_;
  std::filesystem::path path_;
  FileDescriptor file_;
  std::string rest_;  // of the last record, or the first, what the disk has not taken yet
};

}  // namespace disttf::data
