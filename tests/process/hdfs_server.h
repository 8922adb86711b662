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
  // Whether it is installed; `why` says what to do where it is not.
  [[nodiscard]] static bool is_installed(std::string& why);

  // Keeps its files in `folder`. It takes writes when this returns, or a test has failed.
  explicit HdfsServer(std::filesystem::path folder);

  // Of one of the two; both wait.
  void kill_name_node();
  void start_name_node();  // again, on the same port; it takes writes when this returns
  void kill_data_node();
  void start_data_node();

  // "webhdfs://127.0.0.1:PORT".
  [[nodiscard]] std::string url() const;
  [[nodiscard]] std::uint16_t http_port() const { return name_http_.number(); }
  // Who owns the root.
  [[nodiscard]] static std::map<std::string, std::string> variables();

 private:
  [[nodiscard]] std::unique_ptr<Process> java(const std::string& name, const std::string& type,
                                              const std::string& argument) const;
  void configure() const;
  // Until disttf does that.
  void wait_until_done(const std::vector<std::string>& words) const;
  // Until a byte can be written.
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
