// The progress of a run: the chief writes it to a pipe, and `launch` reads it and draws one line of
// it.
//
//  record: "step train_steps loss images\n", e.g. "1200 2000 0.0812 240000\n"; images: trained on
//  by all trainers since the start; of a user's program "240000 rows\n". Or kEvaluationBegins.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace disttf::roles {

// The record before the evaluation of the result.
inline constexpr std::string_view kEvaluationBegins = "evaluation";

struct Progress {
  std::uint64_t step = 0;
  std::uint64_t train_steps = 0;
  double loss = 0;
  std::uint64_t images = 0;
  bool are_rows = false;  // of a user's program, instead of images
};

// Writes at most ten records a second, so that the computing thread is not slowed down. Owns no
// descriptor; ignores a reader that has gone or is slow.
class ProgressWriter {
 public:
  explicit ProgressWriter(int fd) noexcept;
  void write(const Progress& progress);
  // The evaluation of the result begins. Always written.
  void write_evaluation();

 private:
  void write_record(std::string_view record);

  int fd_;
  std::chrono::steady_clock::time_point next_{};
};

// `record`: without its newline. Returns nullopt if it is not a record.
[[nodiscard]] std::optional<Progress> parse_progress(std::string_view record);

// "step 1200/2000 loss 0.0812 321000 images/s 0:03 left"; rate and remaining time appear once they
// are known. `elapsed`: since the first record.
[[nodiscard]] std::string progress_line(const Progress& progress, const Progress& first,
                                        std::chrono::duration<double> elapsed);

// The live line of a whole run, in which the chief may die and come back. Each call returns what to
// draw from now on; empty: nothing. Has no clock.
class ProgressMeter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  [[nodiscard]] std::string on_record(const Progress& progress, TimePoint now);
  // There will be no record until another process is the chief. The line keeps the step; rate and
  // remaining time are measured again afterwards, without the gap.
  [[nodiscard]] std::string on_chief_away();

 private:
  std::optional<Progress> first_;  // the rate is measured from here
  TimePoint first_at_{};
  std::optional<Progress> last_;
};

}  // namespace disttf::roles
