#include "tests/process/cpu_quota.h"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace disttf::test_process {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kMillisecond = 1000;  // in microseconds, the kernel's unit

void write_to(const fs::path& file, const std::string& text) {
  if (!(std::ofstream(file) << text).flush()) {
    throw std::runtime_error("cannot write " + text + " to " + file.string());
  }
}

bool has_word(const std::string& text, std::string_view word, char between) {
  std::istringstream words(text);
  for (std::string each; std::getline(words, each, between);) {
    if (each == word) {
      return true;
    }
  }
  return false;
}

// A mounted hierarchy that limits processors.
struct Hierarchy {
  fs::path mount;
  bool is_v2 = false;
};

// v1's hierarchy if it controls the processors: a machine may have both.
std::vector<Hierarchy> hierarchies() {
  std::vector<Hierarchy> found;
  std::ifstream mounts("/proc/mounts");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string device;
    std::string place;
    std::string type;
    std::string options;
    words >> device >> place >> type >> options;
    if (type == "cgroup" && has_word(options, "cpu", ',')) {
      // v1 comes first: if it has the controller, v2 cannot limit processors.
      found.insert(found.begin(), {.mount = place, .is_v2 = false});
    } else if (type == "cgroup2") {
      found.push_back({.mount = place, .is_v2 = true});
    }
  }
  return found;
}

// Returns this process's group. A new group can be made below it, or, where v2 does not allow that,
// beside it.
fs::path own_group(const Hierarchy& hierarchy) {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (hierarchy.is_v2 ? controllers.empty() : has_word(controllers, "cpu", ',')) {
      return hierarchy.mount / fs::path(line.substr(second + 1)).relative_path();
    }
  }
  return hierarchy.mount;
}

// v2: returns the nearest group whose children's processors are limited; empty if there is none.
fs::path parent_in(const Hierarchy& hierarchy) {
  fs::path group = own_group(hierarchy);
  if (!hierarchy.is_v2) {
    return group;
  }
  while (true) {
    std::string controllers;
    std::getline(std::ifstream(group / "cgroup.subtree_control"), controllers);
    if (has_word(controllers, "cpu", ' ')) {
      return group;
    }
    // The walk to the root found no group that delegates `cpu` to its children.
    if (group == hierarchy.mount || !group.has_relative_path()) {
      return {};
    }
    group = group.parent_path();
  }
}

}  // namespace

std::unique_ptr<CpuQuota> CpuQuota::create(unsigned of, std::string& why) {
  why = "a CPU quota needs a control group of the kernel, and there is none for processors";
  for (const Hierarchy& hierarchy : hierarchies()) {
    const fs::path parent = parent_in(hierarchy);
    if (parent.empty()) {
      continue;
    }
    try {
      std::unique_ptr<CpuQuota> quota(new CpuQuota(parent));
      quota->limit(of, hierarchy.is_v2);
      return quota;
    } catch (const std::exception& error) {
      why = std::string("this process may not make a control group: ") + error.what();
    }
  }
  return nullptr;
}

CpuQuota::CpuQuota(fs::path parent) : parent_(std::move(parent)) {
  static std::atomic<unsigned> number = 0;
  group_ = parent_ / ("disttf-" + std::to_string(getpid()) + "-" + std::to_string(++number));
  fs::create_directory(group_);
}

CpuQuota::~CpuQuota() {
  for (const pid_t process : held_) {
    try {
      // A group can be removed only when it is empty.
      write_to(parent_ / "cgroup.procs", std::to_string(process));
    } catch (const std::exception&) {  // the process has ended
    }
  }
  std::error_code ignored;
  fs::remove(group_, ignored);
}

void CpuQuota::limit(unsigned of, bool is_v2) const {
  const std::string quota = std::to_string(kMillisecond);
  const std::string period = std::to_string(of * kMillisecond);
  if (is_v2) {
    write_to(group_ / "cpu.max", quota + " " + period);
  } else {
    write_to(group_ / "cpu.cfs_period_us", period);
    write_to(group_ / "cpu.cfs_quota_us", quota);
  }
}

void CpuQuota::hold(pid_t process) {
  write_to(group_ / "cgroup.procs", std::to_string(process));
  held_.push_back(process);
}

}  // namespace disttf::test_process
