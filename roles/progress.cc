#include "roles/progress.h"

#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>

namespace disttf::roles {

ProgressWriter::ProgressWriter(int fd) noexcept : fd_(fd) {}

void ProgressWriter::write(const Progress& progress) {
  constexpr std::chrono::milliseconds kInterval{100};
  if (fd_ < 0) {
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now < next_ && progress.step < progress.train_steps) {
    return;
  }
  next_ = now + kInterval;
  std::array<char, 128> record{};
  const int length = std::snprintf(record.data(), record.size(), "%llu %llu %.6g %llu\n",
                                   static_cast<unsigned long long>(progress.step),
                                   static_cast<unsigned long long>(progress.train_steps),
                                   progress.loss, static_cast<unsigned long long>(progress.images));
  // The pipe does not block and a record is written whole or not at all (below PIPE_BUF).
  if (::write(fd_, record.data(), static_cast<std::size_t>(length)) < 0 && errno == EPIPE) {
    fd_ = -1;
  }
}

std::optional<Progress> parse_progress(std::string_view record) {
  std::istringstream in{std::string(record)};
  in.imbue(std::locale::classic());
  Progress progress;
  if (!(in >> progress.step >> progress.train_steps >> progress.loss >> progress.images)) {
    return std::nullopt;
  }
  return progress;
}

std::string progress_line(const Progress& progress, const Progress& first,
                          std::chrono::duration<double> elapsed) {
  std::array<char, 128> line{};
  const double seconds = elapsed.count();
  const auto steps = static_cast<double>(progress.step - first.step);
  if (seconds <= 0 || steps <= 0) {
    std::snprintf(line.data(), line.size(), "step %llu/%llu  loss %.4f",
                  static_cast<unsigned long long>(progress.step),
                  static_cast<unsigned long long>(progress.train_steps), progress.loss);
    return line.data();
  }
  const double rate = static_cast<double>(progress.images - first.images) / seconds;
  const auto left = static_cast<long>(
      std::ceil(static_cast<double>(progress.train_steps - progress.step) * seconds / steps));
  std::snprintf(line.data(), line.size(),
                "step %llu/%llu  loss %.4f  %.0f images/s  %ld:%02ld left",
                static_cast<unsigned long long>(progress.step),
                static_cast<unsigned long long>(progress.train_steps), progress.loss, rate,
                left / 60, left % 60);
  return line.data();
}

}  // namespace disttf::roles
