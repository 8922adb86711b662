// A Slurm of this test's own: a controller and three nodes, n1 to n3, from the programs that Debian
// installs (slurm-wlm, munge). Nothing of it is shared with a Slurm that the machine may run.
//
// Every node is a host of a Network, with an address and a process namespace of its own: what it
// runs dies with it, as on a machine that loses power. Key, sockets, state and logs lie in the
// folder that is given. All of it goes when the object does, or when the test dies. Used by one
// thread.
#pragma once

#include <chrono>
#include <deque>
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
  // Whose nodes all wait for jobs. nullptr and the reason: programs are missing, or this process
  // may not create namespaces. Throws std::runtime_error when Slurm was started and is of no use.
  static std::unique_ptr<Slurm> create(const std::filesystem::path& folder, std::string& why);

  // Hands the script to sbatch. Returns the job's number.
  [[nodiscard]] std::string submit(const std::filesystem::path& script);
  void cancel(const std::string& job);
  // What `scontrol show job` says, one "Name=value" after the other.
  [[nodiscard]] std::string show(const std::string& job);
  // Until JobState is one of an ended job, or `limit` is over. Returns it: "COMPLETED".
  [[nodiscard]] std::string wait_for_end(const std::string& job,
                                         std::chrono::milliseconds limit = kPatience);
  // The power of the node, "n2", goes.
  void kill_node(const std::string& node);
  // Everything that a failed test wants to see.
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
