// The limits that Linux's control groups set to this process: what `docker run --cpus`, the limits
// of a pod or those of a Slurm job come to. Of both versions: v1 has a tree of groups for each
// resource, v2 (since Linux 4.5) one for all. Files and their formats: the kernel's
// Documentation/admin-guide/cgroup-v1/ and cgroup-v2.rst.
//
// What a group may have is what the groups above it leave, too: the least counts. In a container
// its own group is often shown as the root, while its path is the host's. Trees are looked for
// where they mostly are, /sys/fs/cgroup and /sys/fs/cgroup/RESOURCE: elsewhere there is no
// limit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace disttf::roles {

// Reads anew each time it is asked. Callable from any thread.
class ControlGroup {
 public:
  // `root`: where proc and sys are.
  explicit ControlGroup(std::filesystem::path root = "/") : root_(std::move(root)) {}

  // These are nothing where there is no limit, or none that can be read. May throw std::bad_alloc.
  //
  // How many processors' time it may have, e.g. 1.5; above 0.
  [[nodiscard]] std::optional<double> processors() const;
  [[nodiscard]] std::optional<std::uint64_t> memory_bytes() const;
  // How much of that is left: the limit without what its processes use, but for pages of files that
  // the kernel gives up for them.
  [[nodiscard]] std::optional<std::uint64_t> memory_left_bytes() const;

 private:
  // For each group of the tree that has `resource` ("cpu"), from its own to the root's.
  // `is_v2`: whose files have other names.
  using Act = std::function<void(const std::filesystem::path& group, bool is_v2)>;
  void for_each_group(std::string_view resource, const Act& act) const;

  std::filesystem::path root_;
};

}  // namespace disttf::roles
