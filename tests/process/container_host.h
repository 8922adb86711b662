// A machine of this test's own that runs containers: namespaces for mounts, network and processes
// in which podman keeps its images, its bridge and its containers. Nothing of it is shared with
// what the machine's own podman has, and it takes nothing from a registry.
//
// The image `disttf` is the last stage of the Containerfile with the built file in it. Containers
// on the network `cluster` find each other by name (netavark, aardvark-dns). Everything lies in the
// folder that is given; all that runs goes when the object does, or when the test dies. Used by one
// thread.
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/process/process.h"

namespace disttf::test_process {

class ContainerHost {
 public:
  // nullptr and the reason: programs are missing, or this process may not run containers.
  // `pods`: podman can make pods, which needs cgroups that it may write to.
  static std::unique_ptr<ContainerHost> create(const std::filesystem::path& folder, bool pods,
                                               std::string& why);
  ~ContainerHost();
  ContainerHost(const ContainerHost&) = delete;
  ContainerHost& operator=(const ContainerHost&) = delete;

  // Starts "podman ..." or another program of /usr/bin on that machine.
  Process& start(const std::vector<std::string>& words);
  // The same to its end. Returns what it printed; throws std::runtime_error when it fails.
  std::string run(const std::vector<std::string>& words);

  // Starts a container of the image, on the network, under its name.
  void start_container(const std::string& name, const std::vector<std::string>& podman_flags,
                       const std::vector<std::string>& arguments);
  // Waits for its end.
  [[nodiscard]] int exit_code(const std::string& name);
  // Standard output and standard error so far.
  [[nodiscard]] std::string logs(const std::string& name);
  // A line of it that the regular expression is found in, now or soon.
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
  pid_t first_ = -1;  // the machine's process 1, as this process numbers it
  std::deque<Process> processes_;
};

}  // namespace disttf::test_process
