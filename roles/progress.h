// How far a run is: the chief writes it to a pipe, `launch` reads it and draws one line of it.
//
//   record: "step train_steps loss images\n", e.g. "1200 2000 0.0812 240000\n"; images: trained on
//   by all trainers since the start.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace disttf::roles {

struct Progress {
  std::uint64_t step = 0;
  std::uint64_t train_steps = 0;
  double loss = 0;
  std::uint64_t images = 0;
};

// Writes at most ten records a second, so that the computing thread does not notice. Owns no
// descriptor; a reader that has gone away or is slow is ignored.
class ProgressWriter {
 public:
  explicit ProgressWriter(int fd) noexcept;
  void write(const Progress& progress);

 private:
  int fd_;
  std::chrono::steady_clock::time_point next_{};
};

// `record`: without its line end. nullopt: not a record.
[[nodiscard]] std::optional<Progress> parse_progress(std::string_view record);

// "step 1200/2000  loss 0.0812  321000 images/s  0:03 left"; the rate and what follows once there
// is one. `elapsed`: since the first record.
[[nodiscard]] std::string progress_line(const Progress& progress, const Progress& first,
                                        std::chrono::duration<double> elapsed);

}  // namespace disttf::roles
