// A share of one processor that a process may have, as a container's limit is: the kernel lets it
// compute for a millisecond in every so many. While it waits for others it loses nothing.
//
// A control group of the kernel (cgroup v2, or v1's `cpu`), and the right to make one: root's, or a
// container's that has been given it. Stopping and continuing the process would need no right, but
// it would stop it while it waits, too, which no lack of processors does. Used by one thread.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace disttf::test_process {

class CpuQuota {
 public:
  // A millisecond in `of` milliseconds. nullptr and the reason when this process may not make one.
  static std::unique_ptr<CpuQuota> create(unsigned of, std::string& why);
  // All that it holds may compute as before.
  ~CpuQuota();
  CpuQuota(const CpuQuota&) = delete;
  CpuQuota& operator=(const CpuQuota&) = delete;

  // All threads of the process, and those that it will have. Throws std::runtime_error.
  void hold(pid_t process);

 private:
  explicit CpuQuota(std::filesystem::path parent);
  void limit(unsigned of, bool is_v2) const;

  std::filesystem::path parent_;
  std::filesystem::path group_;
  std::vector<pid_t> held_;
};

}  // namespace disttf::test_process
