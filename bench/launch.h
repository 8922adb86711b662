// Runs `disttf launch` as a user does, reads its page, and collects its results.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "bench/benchmarks.h"

namespace disttf::bench {

// A new directory in $TMPDIR or /tmp, removed with its contents.
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
  double images_per_second = 0;  // of the training alone, from the chief's log
  double accuracy = 0;
  std::string weights;      // their SHA-256, if the arguments request it
  double wall_seconds = 0;  // from the start of the command to its end
  double cpu_seconds = 0;   // of all its processes together
};

// Returns the path of disttf, beside this program.
[[nodiscard]] std::string disttf_program();

// Runs a launch and returns its result. Throws std::runtime_error if it prints none. `saves`: into
// an initially empty --train_dir. In the arguments, {scratch} stands for a directory that is
// removed afterwards, and {page_port} for the port of a page that is read all the time.
[[nodiscard]] Result run_launch(const std::string& arguments, bool saves,
                                const JobOptions& options);

// Returns the options with the n-th part of the steps, at least one: for models that take longer.
[[nodiscard]] JobOptions part_of(JobOptions options, int part);

// Returns what a shell command prints on both of its outputs; `exit_code` receives its exit status.
[[nodiscard]] std::string output_of(const std::string& command, int* exit_code = nullptr);

// Like output_of(); stores time and resources used in `result`.
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

// Runs both jobs `repetitions` times, in turn, and adds the figure `name` with its floor,
// `name`/plain; ratios are medians over the pairs. `saves`: as in run_launch(), for `with` alone.
// Throws std::runtime_error if both print their weights and these differ.
struct Pair {
  std::string name;
  std::string plain;  // arguments
  std::string with;
  bool saves = false;
};
void run_pairs(const Pair& pair, const JobOptions& options, Reporter& reporter);

// Returns the median over the pairs. REQUIRES: both have the same size, which is not 0.
[[nodiscard]] double ratio_of_pairs(const std::vector<double>& with,
                                    const std::vector<double>& without);

// Acts like a browser that shows the page of a run: it reads the stream of updates until the stream
// ends.
class PageReader {
 public:
  // Chooses a port on 127.0.0.1 that is free now, and tries to read there from then on.
  PageReader();
  ~PageReader();
  PageReader(const PageReader&) = delete;
  PageReader& operator=(const PageReader&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  // Bytes of the stream so far.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  void read();
  bool read_once();  // returns false if no server listens there yet

  std::uint16_t port_;
  std::atomic<std::size_t> bytes_ = 0;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace disttf::bench
