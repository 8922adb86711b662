// Runs `disttf launch` as a user does, and keeps what came of it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/benchmarks.h"

namespace disttf::bench {

// A directory of its own in $TMPDIR or /tmp, removed with what is in it.
class ScratchDirectory {
 public:
  ScratchDirectory();  // throws std::runtime_error
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

struct Result {
  double images_per_second = 0;  // of the training alone, as the chief logs it
  double accuracy = 0;
  std::string weights;      // their SHA-256, where the arguments ask for it
  double wall_seconds = 0;  // from the start of the command to its end
  double cpu_seconds = 0;   // of all its processes together
};

// The product, beside this program.
[[nodiscard]] std::string disttf_program();

// Throws std::runtime_error when it prints no result. `saves`: into a --train_dir that is empty at
// the start. In the arguments {scratch} stands for a directory that is removed afterwards, and
// {page_port} for the port of a page that is read all the time.
[[nodiscard]] Result run_launch(const std::string& arguments, bool saves,
                                const JobOptions& options);

// The same with the n-th part of the steps, one at least: for a model that takes so much longer.
[[nodiscard]] JobOptions part_of(JobOptions options, int part);

// What a shell command prints, on both of its outputs; `exit_code`: how it ended.
[[nodiscard]] std::string output_of(const std::string& command, int* exit_code = nullptr);

// The same, and what it took, into `result`.
[[nodiscard]] std::string timed_output(const std::string& command, Result& result);

// The results of one job, by repetition.
struct Results {
  std::vector<double> rates;
  std::vector<double> walls;
  std::vector<double> cpus;
  double accuracy = 0;

  void add(const Result& result);
  [[nodiscard]] Figure figure(const std::string& name, const std::string& floor) const;
};

// Runs both `repetitions` times, the first and the second in turn, and adds `name` with its floor,
// `name`/plain; ratios are medians over the pairs. `saves`: as run_launch(), of `with` alone.
// Throws std::runtime_error where both print their weights and these differ.
struct Pair {
  std::string name;
  std::string plain;  // arguments
  std::string with;
  bool saves = false;
};
void run_pairs(const Pair& pair, const JobOptions& options, Reporter& reporter);

// The median over the pairs. REQUIRES: as many of both, and some.
[[nodiscard]] double ratio_of_pairs(const std::vector<double>& with,
                                    const std::vector<double>& without);

}  // namespace disttf::bench
