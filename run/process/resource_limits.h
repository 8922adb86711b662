// What this process may take: the limits of its control groups, and the memory that is left.
//
// The limits of Linux's control groups for this process: those of `docker run --cpus`, of a pod or
// of a Slurm job. Supports both versions: v1 has a tree of groups for each resource, v2 (since
// Linux 4.5) one for all. Files and formats: the kernel's Documentation/admin-guide/cgroup-v1/ and
// cgroup-v2.rst.
//
// A group is also limited by the groups above it: the lowest limit counts. In a container its own
// group is often shown as the root, while its path is that of the host. Trees are expected at their
// usual mount points, /sys/fs/cgroup and /sys/fs/cgroup/RESOURCE; otherwise no limit is found.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace disttf::roles {

// Reads the files on each call. Callable from any thread.
class ControlGroup {
 public:
  // `root`: where proc and sys are.
  explicit ControlGroup(std::filesystem::path root = "/") : root_(std::move(root)) {}

  // These return nullopt if there is no limit, or none that can be read. May throw std::bad_alloc.
  //
  // Processor time as a number of processors, e.g. 1.5; above 0.
  [[nodiscard]] std::optional<double> processors() const;
  [[nodiscard]] std::optional<std::uint64_t> memory_bytes() const;
  // The part of that limit that is left: without the memory in use, but including pages of files
  // that the kernel can drop.
  [[nodiscard]] std::optional<std::uint64_t> memory_left_bytes() const;

 private:
  // Calls `act` for each group of the tree that has `resource` ("cpu"), from its own to the root's.
  // `is_v2`: whose files have other names.
  using Act = std::function<void(const std::filesystem::path& group, bool is_v2)>;
  void for_each_group(std::string_view resource, const Act& act) const;

  std::filesystem::path root_;
};

// How much memory this process can still get. What does not fit is refused before any of it is
// taken: if a process touches more than there is, the kernel kills a process, perhaps another one.

// Returns the lowest of: what the machine has available (MemAvailable), what the limits of the
// process's control groups leave, and what its limit on address space (ulimit -v) leaves. nullopt
// if none is known. `root`: where proc and sys are.
[[nodiscard]] std::optional<std::uint64_t> available_memory_bytes(
    const std::filesystem::path& root = "/");

// Throws Failure (kError) if fewer than `bytes` are available, unless these are few (16 MiB):
// "`who` does not have the memory for `what`: it takes 2295 MiB, and 1800 MiB are available".
void require_memory(std::uint64_t bytes, const std::string& who, const std::string& what);

}  // namespace disttf::roles
