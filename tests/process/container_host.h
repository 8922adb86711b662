// A machine for a test that runs containers: namespaces for mounts, network and processes in which
// podman keeps its images, its bridge and its containers. It shares nothing with the machine's own
// podman, and uses no registry.
//
// The image `disttf` is the last stage of the Containerfile with the built executable in it.
// Containers on the network `cluster` find each other by name (netavark, aardvark-dns). All files
// are in the given folder; all processes end when the object is destroyed, or when the test dies.
// Used by one thread.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/process/process.h"

namespace disttf::test_process {

class ContainerHost {
 public:
  // Returns nullptr and the reason if programs are missing, or if this process may not run
  // containers. `pods`: podman can make pods, for which it needs writable cgroups.
  static std::unique_ptr<ContainerHost> create(const std::filesystem::path& folder, bool pods,
                                               std::string& why);
  ~ContainerHost();
  ContainerHost(const ContainerHost&) = delete;
  ContainerHost& operator=(const ContainerHost&) = delete;

  // Starts "podman ..." or another program of /usr/bin on that machine.
  Process& start(const std::vector<std::string>& words);
  // Runs it and returns its output; throws std::runtime_error if it fails.
  std::string run(const std::vector<std::string>& words);

  // Starts a container of the image on the network, with this name.
  void start_container(const std::string& name, const std::vector<std::string>& podman_flags,
                       const std::vector<std::string>& arguments);
  // Waits for the container's end and returns its exit code.
  [[nodiscard]] int exit_code(const std::string& name);
  // Returns standard output and standard error so far.
  [[nodiscard]] std::string logs(const std::string& name);
  // Waits for a line of its output that matches the regular expression.
  [[nodiscard]] bool says(const std::string& name, const std::string& pattern);

 private:
  ContainerHost(const std::filesystem::path& folder, bool pods);
  void write_config() const;
  bool start_machine();
  void build_image();
  std::vector<std::string> words_on_machine(const std::vector<std::string>& words) const;

  std::filesystem::path folder_;
  bool pods_;
  std::unique_ptr<Process> machine_;
  pid_t first_ = -1;  // the machine's process 1, by this process's numbering
  std::deque<Process> processes_;
};

}  // namespace disttf::test_process
