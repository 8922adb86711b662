#include "run/process/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cmath>

namespace disttf::roles {
namespace {

// Ends the record of a user's program.
constexpr std::string_view kRows = " rows";

// Takes a number and the terminator after it off the front of `text`.
template <typename T>
bool take_number(std::string_view& text, char terminator, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size() || *end != terminator) {
    return false;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return true;
}

}  // namespace

ProgressWriter::ProgressWriter(int fd) noexcept : fd_(fd) {}

void ProgressWriter::write(const Progress& progress) {
  constexpr std::chrono::milliseconds kInterval{100};
  if (fd_ < 0) {
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  // The last record is always written.
  if (now < next_ && progress.step < progress.train_steps) {
    return;
  }
  next_ = now + kInterval;
  std::array<char, 128> record{};
  const char* const end = fmt::format_to_n(record.data(), record.size(), "{} {} {:.6g} {}{}\n",
                                           progress.step, progress.train_steps, progress.loss,
                                           progress.images, progress.are_rows ? kRows : "")
                              .out;
  write_record({record.data(), end});
}

void ProgressWriter::write_evaluation() {
  if (fd_ >= 0) {
    write_record(fmt::format("{}\n", kEvaluationBegins));
  }
}

// The pipe does not block, and a record is written as a whole or not at all (below PIPE_BUF).
void ProgressWriter::write_record(std::string_view record) {
  // EAGAIN, from a reader that is slow, loses a record; a newer one follows.
  if (::write(fd_, record.data(), record.size()) < 0 && errno == EPIPE) {
    fd_ = -1;
  }
}

std::optional<Progress> parse_progress(std::string_view record) {
  Progress progress{.are_rows = record.ends_with(kRows)};
  record.remove_suffix(progress.are_rows ? kRows.size() : 0);
  std::string text(record);
  // take_number() needs a character behind each number; a truncated record is rejected.
  text += '\n';
  std::string_view rest = text;
  if (take_number(rest, ' ', progress.step) && take_number(rest, ' ', progress.train_steps) &&
      take_number(rest, ' ', progress.loss) && take_number(rest, '\n', progress.images) &&
      rest.empty()) {
    return progress;
  }
  return std::nullopt;
}

std::string progress_line(const Progress& progress, const Progress& first,
                          std::chrono::duration<double> elapsed) {
  const double seconds = elapsed.count();
  // No rate without two records. They come from another process, so they need not be consistent.
  if (seconds <= 0 || progress.step <= first.step || progress.images < first.images ||
      progress.step > progress.train_steps) {
    return fmt::format("step {}/{}  loss {:.4f}", progress.step, progress.train_steps,
                       progress.loss);
  }
  const auto steps = static_cast<double>(progress.step - first.step);
  const double rate = static_cast<double>(progress.images - first.images) / seconds;
  const auto left = static_cast<long>(
      std::ceil(static_cast<double>(progress.train_steps - progress.step) * seconds / steps));
  return fmt::format("step {}/{}  loss {:.4f}  {:.0f} {}/s  {}:{:02} left", progress.step,
                     progress.train_steps, progress.loss, rate,
                     progress.are_rows ? "rows" : "images", left / 60, left % 60);
}

std::string ProgressMeter::on_record(const Progress& progress, TimePoint now) {
  // A rollback restarts the measurement.
  if (!first_ || progress.step < last_->step) {
    first_ = progress;
    first_at_ = now;
  }
  last_ = progress;
  return progress.step >= progress.train_steps ? std::string()
                                               : progress_line(progress, *first_, now - first_at_);
}

std::string ProgressMeter::on_chief_away() {
  // The time without a chief must not count toward the rate.
  first_.reset();
  if (!last_ || last_->step >= last_->train_steps) {
    return {};
  }
  return "step " + std::to_string(last_->step) + "/" + std::to_string(last_->train_steps) +
         "  waiting for the chief";
}

}  // namespace disttf::roles
