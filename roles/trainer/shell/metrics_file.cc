#include "roles/trainer/shell/metrics_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "run/process/log.h"

namespace disttf::roles {

void MetricsFile::append(std::string_view line) {
  if (path_.empty()) {
    return;
  }
  // Opened for each line, so that a file that was moved away is replaced by a new one. O_NONBLOCK:
  // a FIFO without a reader must not delay training.
  const int fd =
      ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0644);
  // The rest of an earlier, broken line is ended first, so that this line can be read.
  const std::string text = (left_a_part_ ? "\n" : "") + std::string(line);
  const ssize_t written = fd < 0 ? -1 : ::write(fd, text.data(), text.size());
  // A short write without an error means a full disk.
  const int error = written < 0 ? errno : ENOSPC;
  const bool is_whole = written == static_cast<ssize_t>(text.size());
  if (fd >= 0) {
    ::close(fd);
  }
  // One warning for each series of failures.
  if (!is_whole && !has_failed_) {
    log_warning("--metrics_file: " + path_ + " cannot be written: " +
                std::system_category().default_error_condition(error).message());
  }
  has_failed_ = !is_whole;
  left_a_part_ = written > 0 ? !is_whole : left_a_part_;
}

}  // namespace disttf::roles
