// A real HDFS on ports of this machine: a NameNode and a DataNode of Hadoop, whose archives
// .ci/tools makes in build/tools/hdfs.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/process/cluster_on_loopback.h"
#include "tests/process/process.h"

namespace disttf::test_process {

class HdfsServer {
 public:
  // Returns whether it is installed; `why` says how to install it.
  [[nodiscard]] static bool is_installed(std::string& why);

  // Keeps its files in `folder`. Fails the test if HDFS does not accept writes in time.
  explicit HdfsServer(std::filesystem::path folder);

  // Kills one of the two servers and waits for its end.
  void kill_name_node();
  void start_name_node();  // again, on the same port; HDFS accepts writes when this returns
  void kill_data_node();
  void start_data_node();

  // Returns "webhdfs://127.0.0.1:PORT".
  [[nodiscard]] std::string url() const;
  [[nodiscard]] std::uint16_t http_port() const { return name_http_.number(); }
  // Returns the variables of a client that owns the root directory.
  [[nodiscard]] static std::map<std::string, std::string> variables();

 private:
  [[nodiscard]] std::unique_ptr<Process> java(const std::string& name, const std::string& type,
                                              const std::string& argument) const;
  void configure() const;
  // Retries the disttf command until it succeeds.
  void wait_until_done(const std::vector<std::string>& words) const;
  // Waits until a byte can be written.
  void wait_until_writable() const;

  const std::filesystem::path folder_;
  const ReservedPort name_rpc_;
  const ReservedPort name_http_;
  const ReservedPort data_;
  const ReservedPort data_http_;
  const ReservedPort data_ipc_;
  std::unique_ptr<Process> name_node_;
  std::unique_ptr<Process> data_node_;
};

}  // namespace disttf::test_process
