#include "data/tensorboard/event_file.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <span>
#include <vector>

#include "data/checksums.h"
#include "data/little_endian.h"
#include "data/posix_file_system.h"
#include "data/tensorboard/events.h"

namespace disttf::data {
namespace {

constexpr std::string_view kEventPrefix = "events.out.tfevents.";
constexpr std::size_t kDigits = 10;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name.front() == '\0') {
    return "localhost";
  }
  std::string text = name.data();
  // The host's name becomes a part of a file name.
  std::ranges::replace(text, '/', '-');
  return text;
}

// Returns 0 if `name` is not an event file's name.
std::uint64_t number_of(std::string_view name) {
  std::uint64_t number = 0;
  if (name.starts_with(kEventPrefix)) {
    name.remove_prefix(kEventPrefix.size());
    std::from_chars(name.data(), name.data() + std::min(name.size(), kDigits), number);
  }
  return number;
}

}  // namespace

std::string event_record(std::string_view event) {
  std::string record;
  record.reserve(event.size() + 16);
  append_little_endian(record, std::uint64_t{event.size()});
  append_little_endian(record, masked_crc32c(record));
  record += event;
  append_little_endian(record, masked_crc32c(event));
  return record;
}

std::string event_file_name(std::uint64_t seconds, std::span<const std::string> names,
                            std::string_view host, std::uint64_t process) {
  for (const std::string& name : names) {
    // TensorBoard reads the files of a folder in the order of their names. A clock that was set
    // back must not put a new file before an older one.
    seconds = std::max(seconds, number_of(name) + 1);
  }
  std::string number = std::to_string(seconds);
  // Leading zeros, so that the order of names is that of numbers.
  number.insert(0, kDigits - std::min(kDigits, number.size()), '0');
  return std::string(kEventPrefix) + number + "." + std::string(host) + "." +
         std::to_string(process) + ".0";
}

std::string new_event_file_name(std::span<const std::string> names) {
  return event_file_name(static_cast<std::uint64_t>(now_seconds()), names, host_name(),
                         static_cast<std::uint64_t>(::getpid()));
}

EventFile::EventFile(const std::filesystem::path& directory, Write write) : write_(write) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  PosixFileSystem files;
  const std::vector<std::string> names = files.names_in(directory, error);
  if (error) {
    throw std::system_error(error, directory.string() + " cannot be created");
  }
  path_ = directory / new_event_file_name(names);
  file_ = FileDescriptor(
      ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file_.is_open()) {
    const std::error_code why(errno, std::system_category());
    throw std::system_error(why, path_.string() + " cannot be created");
  }
  rest_ = event_record(
      file_version_event(now_seconds()));  // a full disk delays it until the next append
  static_cast<void>(write_rest());
}

std::error_code EventFile::write_all(std::string_view& bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write_(file_.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return {written < 0 ? errno : ENOSPC, std::system_category()};
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

std::error_code EventFile::write_rest() {
  std::string_view rest = rest_;
  const std::error_code error = write_all(rest);
  rest_ = std::string(rest);
  return error;
}

std::error_code EventFile::append(std::string_view event) {
  // The rest of the previous record first: a new record in its middle would give a wrong checksum,
  // at which a reader stops permanently.
  if (const std::error_code error = write_rest()) {
    return error;
  }
  const std::string record = event_record(event);
  std::string_view bytes = record;
  const std::error_code error = write_all(bytes);
  // A record that was begun must be completed later. One of which nothing was written is dropped,
  // and its error is returned.
  if (bytes.size() != record.size()) {
    rest_ = std::string(bytes);
  }
  return error;
}

}  // namespace disttf::data
