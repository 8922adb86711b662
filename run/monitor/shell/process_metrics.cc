#include "run/monitor/shell/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>

#include "run/monitor/shell/process_facts.h"

namespace disttf::roles {
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
