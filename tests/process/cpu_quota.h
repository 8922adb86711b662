// Limits processes to a share of one processor, like a container's limit: the kernel lets them
// compute for a millisecond in each period. While a process waits for others, it does not use up
// its share.
//
// Uses a control group (cgroup v2, or v1's `cpu`), for which a process needs root's rights or a
// delegated group. Stopping and continuing the process would need no rights, but would also stop it
// while it waits, which a lack of processors does not. Used by one thread.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace disttf::test_process {

class CpuQuota {
 public:
  // A millisecond in `of` milliseconds. Returns nullptr and the reason if this process may not make
  // one.
  static std::unique_ptr<CpuQuota> create(unsigned of, std::string& why);
  // Removes the limit from all processes.
  ~CpuQuota();
  CpuQuota(const CpuQuota&) = delete;
  CpuQuota& operator=(const CpuQuota&) = delete;

  // Limits all threads of the process, also future ones. Throws std::runtime_error.
  void hold(pid_t process);

 private:
  explicit CpuQuota(std::filesystem::path parent);
  void limit(unsigned of, bool is_v2) const;

  std::filesystem::path parent_;
  std::filesystem::path group_;
  std::vector<pid_t> held_;
};

}  // namespace disttf::test_process
