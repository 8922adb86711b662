#include "run/monitor/shell/process_facts.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <string>

namespace disttf::roles {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// The second number of /proc/self/statm, in pages.
std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  if (file >> pages && file >> pages) {
    return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  }
  return 0;
}

// Identifies CLOCK_MONOTONIC: the boot of the kernel and the time namespace, within which all
// processes share it. Constant for a process.
std::string clock_name() {
  constexpr std::size_t kEnough = 8;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  struct stat names {};
  const bool is_known = !boot.empty() && stat("/proc/self/ns/time", &names) == 0;
  return is_known ? boot.substr(0, kEnough) + "-" + std::to_string(names.st_ino) : std::string();
}

}  // namespace

ProcessFacts process_facts() {
  static const std::string kClock = clock_name();
  std::array<char, 256> host{};
  // One less, since a longer name is cut off without a zero at its end.
  gethostname(host.data(), host.size() - 1);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {.host = host.data(),
          .pid = getpid(),
          .resident_bytes = resident_bytes(),
          .cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime),
          .clock = kClock};
}

double record_time(std::chrono::system_clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

namespace {

// 0: /proc is unavailable.
double open_descriptors() {
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) {
    return 0;
  }
  double count = 0;
  while (const dirent* const entry = readdir(directory)) {
    count += entry->d_name[0] != '.' ? 1 : 0;
  }
  closedir(directory);
  return count - 1;  // without the descriptor of this search
}

double most_descriptors() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : 0;
}

}  // namespace

void add_process_metrics(std::span<MetricFamily> families, double started) {
  const auto add = [&families](Metric metric, double value) {
    // 0 means unknown: none of these can be 0.
    if (value != 0) {
      families[static_cast<std::size_t>(metric)].samples.push_back({.labels = {}, .value = value});
    }
  };
  const ProcessFacts facts = process_facts();
  add(Metric::kProcessCpu, facts.cpu_seconds);
  add(Metric::kProcessMemory, static_cast<double>(facts.resident_bytes));
  add(Metric::kProcessOpenFds, open_descriptors());
  add(Metric::kProcessMaxFds, most_descriptors());
  add(Metric::kProcessStart, started);
}

}  // namespace disttf::roles
