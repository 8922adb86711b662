// A cluster whose tasks use ports of 127.0.0.1 that no other process can take meanwhile.
//
// Each port is reserved by a socket that is bound, with SO_REUSEADDR, but does not listen; it stays
// open for as long as the cluster exists. The port's task listens beside it (with SO_REUSEADDR
// too); until then connections are refused. TFMesos reserves ports in the same way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/file.h"
#include "net/wire/cluster.h"

namespace disttf::test_process {

// A port of 127.0.0.1, reserved for the lifetime of the object.
class ReservedPort {
 public:
  ReservedPort();  // throws std::system_error
  [[nodiscard]] std::uint16_t number() const noexcept { return number_; }
  [[nodiscard]] int socket() const noexcept { return socket_.number(); }

 private:
  data::FileDescriptor socket_;
  std::uint16_t number_ = 0;
};

struct ClusterSize {
  std::size_t ps = 1;
  std::size_t workers = 2;
  bool chief = false;
  std::string host = "127.0.0.1";  // the machine's name in the addresses
};

class ClusterOnLoopback {
 public:
  explicit ClusterOnLoopback(const ClusterSize& size = {});

  [[nodiscard]] const net::Cluster& tasks() const noexcept { return cluster_; }
  // Returns "127.0.0.1:34567".
  [[nodiscard]] std::string address(net::Job job, std::size_t index) const;
  // Returns "127.0.0.1:1,127.0.0.1:2": a job's list in the form of a flag.
  [[nodiscard]] std::string list(net::Job job) const;
  // Returns --ps_hosts=..., --worker_hosts=... and, with a chief, --chief_host=...
  [[nodiscard]] std::vector<std::string> host_flags() const;
  // Returns the variable's value for that task.
  [[nodiscard]] std::string tf_config(const std::string& type, std::size_t index) const;

 private:
  std::vector<net::Address> reserve(std::size_t count, const std::string& host);

  std::vector<ReservedPort> ports_;
  net::Cluster cluster_;
};

}  // namespace disttf::test_process
