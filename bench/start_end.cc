// Measures the time of a run outside of its steps: until the first step is applied, and after the
// last.
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/benchmarks.h"
#include "bench/launch.h"

namespace disttf::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array kWorkers = {2, 16, 64};
constexpr int kStepsOfStart = 10;

double seconds_from(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct StartAndEnd {
  double first_step = 0;  // seconds from the start of the command
  double end = 0;         // seconds from the last step to the end of all its processes
};

// Runs ten steps; the chief logs the result of each.
StartAndEnd timed_launch(const std::string& command) {
  const Clock::time_point begin = Clock::now();
  std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) {
    throw std::runtime_error("cannot run " + command);
  }
  StartAndEnd times;
  Clock::time_point last = begin;
  std::string output;
  std::array<char, 4096> line{};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    output += line.data();
    if (std::string_view(line.data()).find("[worker:0]") != std::string_view::npos &&
        std::string_view(line.data()).find("(global step: ") != std::string_view::npos) {
      last = Clock::now();
      times.first_step = times.first_step == 0 ? seconds_from(begin) : times.first_step;
    }
  }
  const int status = pclose(pipe);
  times.end = seconds_from(last);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || times.first_step == 0) {
    throw std::runtime_error(command + " made no step:\n" + output);
  }
  return times;
}

// Starts that many processes of disttf that print their version and exit. Returns the time.
double run_processes(int count) {
  const std::string command = "for i in $(seq " + std::to_string(count) + "); do " +
                              disttf_program() + " --version & done; wait";
  const Clock::time_point begin = Clock::now();
  static_cast<void>(output_of(command));
  return seconds_from(begin);
}

}  // namespace

void run_start_end(const JobOptions& options, Reporter& reporter) {
  for (const int workers : kWorkers) {
    const std::string name = std::to_string(workers) + "_workers_1_ps";
    if ((!options.wants("start/" + name) && !options.wants("end/" + name)) ||
        (options.quick && workers != kWorkers.front())) {
      continue;
    }
    std::vector<double> starts;
    std::vector<double> ends;
    std::vector<double> processes;
    for (int each = 0; each < options.repetitions; ++each) {
      const StartAndEnd times = timed_launch(
          disttf_program() + " launch --ps 1 --workers " + std::to_string(workers) +
          " --train_steps " + std::to_string(kStepsOfStart) +
          " --log_every 1 --dataset=" + options.dataset + " --data_dir=" + options.data_dir);
      starts.push_back(times.first_step);
      ends.push_back(times.end);
      processes.push_back(run_processes(workers + 2));  // and the launch itself
    }
    const auto add = [&reporter](const std::string& figure, const std::vector<double>& seconds,
                                 const std::string& floor) {
      reporter.add({.name = figure,
                    .median = median(seconds),
                    .slowest = *std::ranges::max_element(seconds),
                    .unit = "s",
                    .floor = floor,
                    .ratio = {},
                    .extras = {}});
    };
    add("start/" + name + "/processes", processes, "");
    add("start/" + name, starts, "start/" + name + "/processes");
    add("end/" + name, ends, "start/" + name + "/processes");
  }
}

}  // namespace disttf::bench
