#include "run/process/available_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "run/outcome.h"
#include "run/process/control_group.h"

namespace disttf::roles {
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
