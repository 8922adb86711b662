#include "storage/download/download_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "net/wire/text.h"
#include "storage/download/download.h"

namespace disttf::roles {
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
