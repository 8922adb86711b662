#include "run/process/resource_limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include "run/outcome.h"

namespace disttf::roles {
namespace {

using Path = std::filesystem::path;

// Without a limit v1 reports one page less than 2^63 bytes; no machine has half of that.
constexpr std::uint64_t kNoLimitBytes = std::uint64_t{1} << 62U;

// Empty if it cannot be read.
std::string content_of(const Path& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Takes the number that the text begins with, up to a blank or the end of a line, which it takes as
// well; nullopt for "max", "-1" and numbers that do not fit.
std::optional<std::uint64_t> take_number(std::string_view& text) noexcept {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto used = static_cast<std::size_t>(end - text.data());
  const bool is_ended = used == text.size() || text[used] == ' ' || text[used] == '\n';
  if (error != std::errc{} || !is_ended) {
    return std::nullopt;
  }
  text.remove_prefix(std::min(used + 1, text.size()));
  return number;
}

std::optional<std::uint64_t> number_in(const Path& path) {
  const std::string content = content_of(path);
  std::string_view text = content;
  return take_number(text);
}

// Returns the number after a word at the beginning of a line.
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view word) noexcept {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.starts_with(word)) {
      line.remove_prefix(word.size());
      return take_number(line);
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return std::nullopt;
}

std::string_view take_until(std::string_view& text, char end) noexcept {
  const std::string_view part = text.substr(0, text.find(end));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

bool names(std::string_view list, std::string_view resource) noexcept {
  while (!list.empty()) {
    if (take_until(list, ',') == resource) {
      return true;
    }
  }
  return false;
}

template <typename Value>
void keep_least(std::optional<Value>& least, Value value) {
  least = std::min(least.value_or(value), value);
}

}  // namespace

// A line of /proc/self/cgroup is "4:cpu,cpuacct:/a/b"; in v2 "0::/a/b".
void ControlGroup::for_each_group(std::string_view resource, const Act& act) const {
  const Path mounted = root_ / "sys/fs/cgroup";
  const std::string content = content_of(root_ / "proc/self/cgroup");
  for (std::string_view rest = content; !rest.empty();) {
    std::string_view line = take_until(rest, '\n');
    if (std::ranges::count(line, ':') < 2) {
      continue;
    }
    const std::string_view number = take_until(line, ':');
    const std::string_view list = take_until(line, ':');
    const bool is_v2 = number == "0" && list.empty();
    if (!is_v2 && !names(list, resource)) {
      continue;
    }
    const Path tree = is_v2 ? mounted : mounted / resource;
    Path below = Path(line).relative_path();
    // If the path is that of the host, a part of it may exist here and be another group.
    std::error_code ignored;
    if (!std::filesystem::is_directory(tree / below, ignored)) {
      below.clear();
    }
    // The limits of all enclosing groups apply, too.
    for (; !below.empty(); below = below.parent_path()) {
      act(tree / below, is_v2);
    }
    act(tree, is_v2);
  }
}

std::optional<double> ControlGroup::processors() const {
  std::optional<double> least;
  for_each_group("cpu", [&least](const Path& group, bool is_v2) {
    std::optional<std::uint64_t> quota;
    std::optional<std::uint64_t> period;
    if (is_v2) {
      const std::string content = content_of(group / "cpu.max");  // "150000 100000"
      std::string_view text = content;
      quota = take_number(text);
      period = take_number(text);
    } else {
      quota = number_in(group / "cpu.cfs_quota_us");
      period = number_in(group / "cpu.cfs_period_us");
    }
    // A quota of 0 or a missing period is no limit.
    if (quota.value_or(0) != 0 && period.value_or(0) != 0) {
      keep_least(least, static_cast<double>(*quota) / static_cast<double>(*period));
    }
  });
  return least;
}

std::optional<std::uint64_t> ControlGroup::memory_bytes() const {
  std::optional<std::uint64_t> least;
  for_each_group("memory", [&least](const Path& group, bool is_v2) {
    const auto limit = number_in(group / (is_v2 ? "memory.max" : "memory.limit_in_bytes"));
    if (limit && *limit < kNoLimitBytes) {
      keep_least(least, *limit);
    }
  });
  return least;
}

std::optional<std::uint64_t> ControlGroup::memory_left_bytes() const {
  std::optional<std::uint64_t> least;
  for_each_group("memory", [&least](const Path& group, bool is_v2) {
    const auto limit = number_in(group / (is_v2 ? "memory.max" : "memory.limit_in_bytes"));
    if (!limit || *limit >= kNoLimitBytes) {
      return;
    }
    const auto used = number_in(group / (is_v2 ? "memory.current" : "memory.usage_in_bytes"));
    const std::uint64_t pages = number_after(content_of(group / "memory.stat"),
                                             is_v2 ? "inactive_file " : "total_inactive_file ")
                                    .value_or(0);
    // The kernel reclaims inactive pages of files, so they count as free.
    const std::uint64_t kept = used.value_or(0) - std::min(pages, used.value_or(0));
    keep_least(least, *limit - std::min(kept, *limit));
  });
  return least;
}

namespace {

constexpr std::uint64_t kBytesPerMib = std::uint64_t{1} << 20U;
// The figures of a machine are not exact, and a process takes as much as this anyway.
constexpr std::uint64_t kAlwaysThere = 16 * kBytesPerMib;

// "MemAvailable:    8123456 kB"
std::optional<std::uint64_t> available_to_machine(const std::filesystem::path& root) {
  std::ifstream file(root / "proc/meminfo");
  std::string word;
  std::uint64_t kibibytes = 0;
  for (std::string line; file >> word; std::getline(file, line)) {
    if (word == "MemAvailable:" && file >> kibibytes) return kibibytes << 10U;
  }
  return std::nullopt;
}

// What ulimit -v leaves; the first number of statm is the number of pages in use.
std::optional<std::uint64_t> left_of_address_space(const std::filesystem::path& root) {
  rlimit limit{};
  std::uint64_t pages = 0;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      !(std::ifstream(root / "proc/self/statm") >> pages)) {
    return std::nullopt;
  }
  const std::uint64_t taken = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<std::uint64_t>(taken, limit.rlim_cur);
}

}  // namespace

std::optional<std::uint64_t> available_memory_bytes(const std::filesystem::path& root) {
  std::optional<std::uint64_t> least;
  // Each limit holds by itself, so the smallest one counts. One that cannot be read is no limit.
  for (const auto& each : {available_to_machine(root), ControlGroup(root).memory_left_bytes(),
                           left_of_address_space(root)}) {
    if (each) least = std::min(least.value_or(*each), *each);
  }
  return least;
}

void require_memory(std::uint64_t bytes, const std::string& who, const std::string& what) {
  if (bytes < kAlwaysThere) return;
  const std::optional<std::uint64_t> available = available_memory_bytes();
  // If no limit can be read, the task continues: a failed allocation reports itself.
  if (available && bytes > *available) {
    throw Failure(kError, who + " does not have the memory for " + what + ": it takes " +
                              std::to_string((bytes + kBytesPerMib - 1) / kBytesPerMib) +
                              " MiB, and " + std::to_string(*available / kBytesPerMib) +
                              " MiB are available");
  }
}

}  // namespace disttf::roles
