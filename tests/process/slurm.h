// A separate Slurm for a test: a controller and three nodes, n1 to n3, with the programs of
// Debian's packages (slurm-wlm, munge). It shares nothing with a Slurm that the machine may run.
//
// Every node is a host of a Network, with its own address and PID namespace: its processes die with
// it, as on a machine that loses power. Key, sockets, state and logs are in the given folder.
// Everything ends when the object is destroyed, or when the test dies. Used by one thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/process/network.h"
#include "tests/process/process.h"

namespace disttf::test_process {

class Slurm {
 public:
  // Returns a Slurm whose nodes all wait for jobs; nullptr and the reason if programs are missing
  // or this process may not create namespaces. Throws std::runtime_error if Slurm was started but
  // does not work.
  static std::unique_ptr<Slurm> create(const std::filesystem::path& folder, std::string& why);

  // Submits the script with sbatch. Returns the job's number.
  [[nodiscard]] std::string submit(const std::filesystem::path& script);
  void cancel(const std::string& job);
  // Returns the output of `scontrol show job`, as a sequence of "Name=value".
  [[nodiscard]] std::string show(const std::string& job);
  // Waits until JobState is that of an ended job, or `limit` is over. Returns it: "COMPLETED".
  [[nodiscard]] std::string wait_for_end(const std::string& job,
                                         std::chrono::milliseconds limit = kPatience);
  // Cuts the power of the node, "n2".
  void kill_node(const std::string& node);
  // Returns everything that helps to analyse a failed test.
  [[nodiscard]] std::string report() const;

 private:
  Slurm(const std::filesystem::path& folder, std::unique_ptr<Network> network);
  void write_config() const;
  void start();
  // Runs `words` on the controller's host.
  Process& start_on(const std::string& host, const std::vector<std::string>& words);
  std::string command(const std::vector<std::string>& words);
  void wait_for_nodes();

  std::filesystem::path folder_;
  std::unique_ptr<Network> network_;
  std::map<std::string, std::unique_ptr<Process>> daemons_;
};

}  // namespace disttf::test_process
