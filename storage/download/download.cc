#include "storage/download/download.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <random>
#include <stdexcept>
#include <system_error>

#include "data/checksums.h"
#include "data/error.h"
#include "net/http/http_client.h"
#include "net/wire/backoff.h"
#include "net/wire/text.h"
#include "storage/download/part_file.h"

namespace disttf::roles {
namespace {

// Fewer bytes are no progress: retries on a mirror that breaks off every few packets come to an
// end.
constexpr std::uint64_t kProgressBytes = 64 * 1024;

struct Mirror {
  explicit Mirror(net::Url url) : base(std::move(url)) {}

  net::Url base;
  bool is_unreachable = false;  // not tried again for the next file
  bool has_failed = false;      // tried after those that have not
  std::string error;            // of the last attempt
  std::error_code code;
};

enum class FileState : std::uint8_t { kRight, kAbsent, kWrong };

// `why`: as in PartFile::is_right().
FileState state_of(const std::filesystem::path& path, const RemoteFile& file, std::string& why) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return FileState::kAbsent;
  const auto size_bytes = static_cast<std::uint64_t>(status.st_size);
  if (!S_ISREG(status.st_mode)) {
    why = "is not a regular file";
  } else if (size_bytes != file.size_bytes) {
    why =
        "has " + std::to_string(size_bytes) + " bytes, expected " + std::to_string(file.size_bytes);
  } else if (const std::string actual = data::sha256_file(path); actual != file.sha256) {
    why = "has SHA-256 " + actual + ", expected " + file.sha256;
  } else {
    return FileState::kRight;
  }
  return FileState::kWrong;
}

net::Url parse_mirror(const std::string& text) {
  net::Url url = net::parse_url("--data_url", text);
  if (url.target.find('?') != std::string::npos) {
    throw std::invalid_argument(
        "--data_url: " + net::to_string(url) +
        " has a query; must be a folder's URL, to which a file name is appended");
  }
  if (!url.target.ends_with('/')) url.target += '/';
  return url;
}

class Fetcher {
 public:
  Fetcher(const DownloadOptions& options, const net::Interrupt& interrupt)
      : options_(options),
        interrupt_(interrupt),
        backoff_(std::mt19937_64(std::random_device{}())) {
    for (const std::string& text : options.mirrors) {
      mirrors_.emplace_back(parse_mirror(text));
      // Reports a malformed proxy setting now, not after an hour of waiting for the lock.
      static_cast<void>(net::choose_proxy(options.proxy, mirrors_.back().base));
    }
    if (mirrors_.empty()) throw std::invalid_argument("--data_url: must name at least one mirror");
  }

  [[nodiscard]] std::vector<const RemoteFile*> missing(std::span<const RemoteFile> files) const;
  void fetch(const RemoteFile& file);
  void make_directory() const;
  void message(const std::string& text) const {
    if (options_.on_message) options_.on_message(text);
  }

 private:
  void publish(PartFile& part, const RemoteFile& file) const;
  bool fetch_from(Mirror& mirror, PartFile& part, const RemoteFile& file);
  bool is_worth_resuming(const net::HttpOutcome& outcome, PartFile& part) const;
  void pause_before_retry();
  [[nodiscard]] net::HttpOutcome transfer(const Mirror& mirror, PartFile& part,
                                          const RemoteFile& file) const;
  [[noreturn]] void throw_no_mirror(const RemoteFile& file) const;

  const DownloadOptions& options_;
  const net::Interrupt& interrupt_;
  net::Backoff backoff_;
  std::vector<Mirror> mirrors_;
};

std::vector<const RemoteFile*> Fetcher::missing(std::span<const RemoteFile> files) const {
  std::vector<const RemoteFile*> result;
  for (const RemoteFile& file : files) {
    const std::filesystem::path path = options_.directory / file.name;
    std::string why;
    const FileState state = state_of(path, file, why);
    if (state == FileState::kRight) continue;
    // It may be a user's own file.
    if (state == FileState::kWrong && !options_.replace_wrong) {
      throw DownloadError(
          data::DataError::kWrongChecksum,
          path.string() + " " + why + "; kept as it is; move it away to download it again");
    }
    result.push_back(&file);
  }
  return result;
}

void Fetcher::make_directory() const {
  std::error_code error;
  std::filesystem::create_directories(options_.directory, error);
  if (!error) return;
  throw DownloadError(
      error, "cannot make the directory " + options_.directory.string() + ": " + error.message());
}

void Fetcher::fetch(const RemoteFile& file) {
  PartFile part(options_.directory, file, options_.on_progress);
  std::string why;
  if (part.is_full()) {  // left by a process that ended between the last byte and the rename
    if (part.is_right(why)) return publish(part, file);
    part.restart();
  }
  // A mirror that has failed for one file is likely to fail for the next. The user's order is kept
  // otherwise.
  std::stable_partition(mirrors_.begin(), mirrors_.end(),
                        [](const Mirror& mirror) { return !mirror.has_failed; });
  for (Mirror& mirror : mirrors_) {
    if (mirror.is_unreachable) continue;
    if (fetch_from(mirror, part, file)) return publish(part, file);
    mirror.has_failed = true;
    message("cannot download from a mirror: " + mirror.error);
  }
  throw_no_mirror(file);
}

void Fetcher::publish(PartFile& part, const RemoteFile& file) const {
  part.publish();
  if (!options_.on_result) return;
  options_.on_result("Successfully downloaded " + file.name + " " +
                     std::to_string(file.size_bytes) + " bytes.");
}

void Fetcher::throw_no_mirror(const RemoteFile& file) const {
  std::string sentence = "cannot download " + file.name + " from any mirror:";
  for (const Mirror& mirror : mirrors_) sentence += "\n  " + mirror.error;
  throw DownloadError(mirrors_.back().code, sentence);
}

net::HttpOutcome Fetcher::transfer(const Mirror& mirror, PartFile& part,
                                   const RemoteFile& file) const {
  net::HttpRequest request{.url = mirror.base,
                           .resume_from = part.size_bytes(),
                           .connect_timeout = options_.connect_timeout,
                           .stall_timeout = options_.stall_timeout,
                           .deadline = options_.deadline,
                           .ca_file = options_.ca_file,
                           .proxy = options_.proxy};
  request.url.target += file.name;
  net::HttpOutcome outcome = net::http_get(request, part, interrupt_);
  // First: no other mirror helps against a full disk.
  part.throw_if_disk_failed();
  if (outcome.error == std::errc::operation_canceled) {
    throw DownloadError(outcome.error, "interrupted while downloading " + file.name);
  }
  if (!part.refusal().empty()) {
    outcome.sentence = net::to_string(request.url) + ": the mirror's response " + part.refusal();
  }
  return outcome;
}

// Drops the part where the mirror rejects resuming it.
bool Fetcher::is_worth_resuming(const net::HttpOutcome& outcome, PartFile& part) const {
  using net::HttpError;
  if (outcome.error == HttpError::kRangeNotSatisfiable || outcome.error == HttpError::kBadRange) {
    // Without old bytes the next try would send the same request.
    const bool had_bytes = part.size_bytes() > 0;
    part.restart();
    return had_bytes;
  }
  // Retry after a stall only if the transfer made progress; a mirror that sent nothing stays
  // silent.
  if (outcome.error == HttpError::kStalled) return outcome.received_bytes >= kProgressBytes;
  return outcome.stage == net::HttpStage::kBody && outcome.error == HttpError::kShortBody;
}

void Fetcher::pause_before_retry() {
  const net::Deadline until = net::Clock::now() + backoff_.next();
  // Whatever ends the pause: the next transfer finds out whether there is an interrupt or a
  // timeout.
  static_cast<void>(interrupt_.wait_until(std::min(until, options_.deadline.value_or(until))));
}

// Logs the error of every attempt but the last one, whose error stays in the mirror.
bool Fetcher::fetch_from(Mirror& mirror, PartFile& part, const RemoteFile& file) {
  part.mark_inherited();
  std::uint64_t furthest_bytes = part.size_bytes();
  int attempts_left = std::max(options_.attempts_per_mirror, 1);
  for (;;) {
    const net::HttpOutcome outcome = transfer(mirror, part, file);
    mirror.error = outcome.sentence;
    mirror.code = outcome.error;
    // Each attempt at an unreachable mirror costs a connect timeout, so there is one per download.
    mirror.is_unreachable = outcome.stage == net::HttpStage::kConnect;
    if (!outcome.error) {
      std::string why;
      if (part.is_right(why)) return true;
      mirror.error = net::to_string(mirror.base) + file.name + ": the downloaded file " + why;
      mirror.code = data::DataError::kWrongChecksum;
      // Bytes from an earlier transfer may be the wrong ones: blame the mirror only without them.
      const bool inherited = part.has_inherited_bytes();
      part.restart();
      furthest_bytes = 0;
      if (!inherited) return false;
    } else if (!is_worth_resuming(outcome, part)) {
      return false;
    }
    // Progress costs no attempt: a large file may come in many short connections.
    if (part.size_bytes() >= furthest_bytes + kProgressBytes) {
      furthest_bytes = part.size_bytes();
    } else if (--attempts_left == 0) {
      return false;
    }
    message(mirror.error + "; trying again from byte " + std::to_string(part.size_bytes()));
    pause_before_retry();
  }
}

}  // namespace

std::vector<std::string> default_mirrors() {
  return {"https://storage.googleapis.com/cvdf-datasets/mnist/",
          "https://ossci-datasets.s3.amazonaws.com/mnist/"};
}

void fetch_files(std::span<const RemoteFile> files, const DownloadOptions& options,
                 const net::Interrupt& interrupt) {
  Fetcher fetcher(options, interrupt);
  // Before the lock: a process that has all files does not wait for another's download, and needs
  // no right to write.
  if (fetcher.missing(files).empty()) return;
  fetcher.make_directory();
  const auto on_wait = [&] {
    fetcher.message("another process is downloading into " + options.directory.string() +
                    "; waiting for it");
  };
  DownloadLock lock(options.directory, on_wait, options.deadline, interrupt);
  // Again: the process that had the lock may have fetched them.
  const std::vector<const RemoteFile*> missing = fetcher.missing(files);
  if (missing.empty()) return;
  if (!lock.inherited_failure().empty()) {
    throw DownloadError(std::make_error_code(std::errc::no_such_file_or_directory),
                        "another process has just failed: " + lock.inherited_failure());
  }
  try {
    for (const RemoteFile* file : missing) fetcher.fetch(*file);
  } catch (const DownloadError& error) {
    // Processes that waited for the lock end with this failure instead of trying the same mirrors
    // again. An interrupt concerns this process only.
    if (error.code() != std::errc::operation_canceled) lock.leave_failure(error.what());
    throw;
  }
}

namespace {

// flock() can wait, but with neither a deadline nor our interrupt, so this polls it. It costs at
// most a tenth of a second, once, after a download of seconds.
constexpr std::chrono::milliseconds kRetryInterval{100};
constexpr std::size_t kMaxFailureBytes = 4096;

[[noreturn]] void throw_lock(const std::filesystem::path& path, std::error_code error) {
  throw DownloadError(error, "cannot lock " + path.string() + ": " + error.message());
}

}  // namespace

DownloadLock::DownloadLock(const std::filesystem::path& directory,
                           const std::function<void()>& on_wait,
                           std::optional<net::Deadline> deadline, const net::Interrupt& interrupt)
    : file_(open((directory / ".download.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                 0666)) {
  // The file is never removed: a process that waits for it would then lock a file without a name.
  // The kernel releases the lock of a process that dies.
  const std::filesystem::path path = directory / ".download.lock";
  if (!file_.is_open()) throw_lock(path, {errno, std::generic_category()});
  bool waited = false;
  while (flock(file_.number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) throw_lock(path, {errno, std::generic_category()});
    if (!waited && on_wait) on_wait();
    waited = true;
    const net::Deadline now = net::Clock::now();
    if (deadline && now >= *deadline) {
      throw DownloadError(std::make_error_code(std::errc::timed_out),
                          "another process is still downloading into " + directory.string() +
                              "; timed out waiting for it");
    }
    if (interrupt.wait_until(
            std::min(now + kRetryInterval, deadline.value_or(net::Deadline::max())))) {
      throw DownloadError(
          std::make_error_code(std::errc::operation_canceled),
          "interrupted while another process was downloading into " + directory.string());
    }
  }
  // Only a failure during the wait counts; this process tries for itself otherwise.
  if (waited) read_failure();
  // A later process must not inherit an old failure.
  if (inherited_failure_.empty()) static_cast<void>(ftruncate(file_.number(), 0) == 0);
}

void DownloadLock::read_failure() {
  std::array<char, kMaxFailureBytes> text{};
  const ssize_t size = pread(file_.number(), text.data(), text.size(), 0);
  std::string_view rest(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (!inherited_failure_.empty()) inherited_failure_ += '\n';
    inherited_failure_ += net::one_line(line);
  }
}

void DownloadLock::leave_failure(std::string_view sentence) noexcept {
  sentence = sentence.substr(0, kMaxFailureBytes);
  static_cast<void>(pwrite(file_.number(), sentence.data(), sentence.size(), 0) > 0);
}

}  // namespace disttf::roles
