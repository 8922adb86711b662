#include "roles/doctor/shell/machine_limits.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <system_error>

#include "roles/process/machine.h"

namespace disttf::roles {
namespace {

using Grade = Finding::Grade;

// A ps needs some for itself, and some for each of its tasks: this many are enough for hundreds.
constexpr rlim_t kManyDescriptors = 1024;

constexpr double kMebibyte = 1 << 20U;

// Empty where it cannot be read.
std::string content_of(const std::filesystem::path& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// For each control group that this process is in, from its own to the root's; only the second
// hierarchy. In a container its own is often shown as the root.
void for_each_group(const std::function<void(const std::filesystem::path&)>& act) {
  const auto path = group_path(content_of("/proc/self/cgroup"));
  if (!path) {
    return;
  }
  const std::filesystem::path root = "/sys/fs/cgroup";
  std::filesystem::path below = std::filesystem::path(*path).relative_path();
  while (!below.empty()) {
    act(root / below);
    below = below.parent_path();
  }
  act(root);
}

}  // namespace

Finding check_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return {"descriptors", Grade::kLacking, std::generic_category().message(errno)};
  }
  const std::string text =
      fmt::format("{} files and connections may be open (ulimit -n)", limit.rlim_cur);
  return {"descriptors", limit.rlim_cur < kManyDescriptors ? Grade::kLacking : Grade::kGood, text};
}

Finding check_processors() {
  const std::size_t count = processors();
  auto quota = static_cast<double>(count);
  for_each_group([&](const std::filesystem::path& group) {
    quota = std::min(quota, processor_limit(content_of(group / "cpu.max")).value_or(quota));
  });
  if (quota < static_cast<double>(count)) {
    return {"processors", Grade::kGood,
            fmt::format("{}, of which a control group gives {:.2f}", count, quota)};
  }
  return {"processors", Grade::kGood, fmt::format("{}", count)};
}

Finding check_memory() {
  struct sysinfo machine {};
  if (sysinfo(&machine) != 0) {
    return {"memory", Grade::kLacking, std::generic_category().message(errno)};
  }
  const double total = static_cast<double>(machine.totalram) * machine.mem_unit;
  std::optional<std::uint64_t> least;
  for_each_group([&](const std::filesystem::path& group) {
    if (const auto limit = memory_limit(content_of(group / "memory.max"))) {
      least = std::min(least.value_or(*limit), *limit);
    }
  });
  std::string text = fmt::format("{:.0f} MiB", total / kMebibyte);
  if (least && static_cast<double>(*least) < total) {
    text += fmt::format(", of which a control group gives {:.0f}",
                        static_cast<double>(*least) / kMebibyte);
  }
  rlimit data{};
  if (getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY) {
    text += fmt::format("; a process may have {:.0f} (ulimit -d)",
                        static_cast<double>(data.rlim_cur) / kMebibyte);
  }
  return {"memory", Grade::kGood, text};
}

}  // namespace disttf::roles
