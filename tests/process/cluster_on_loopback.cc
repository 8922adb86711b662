#include "tests/process/cluster_on_loopback.h"

#include <sys/socket.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>

#include "net/wire/address.h"
#include "tests/support/loopback.h"

namespace disttf::test_process {

ReservedPort::ReservedPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = test_support::loopback(0);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  const int yes = 1;
  if (!socket_.is_open() ||
      setsockopt(socket_.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      bind(socket_.number(), generic, size) != 0 ||
      getsockname(socket_.number(), generic, &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot reserve a port");
  }
  number_ = ntohs(address.sin_port);
}

ClusterOnLoopback::ClusterOnLoopback(const ClusterSize& size) {
  cluster_.ps = reserve(size.ps, size.host);
  cluster_.workers = reserve(size.workers, size.host);
  cluster_.chief = reserve(size.chief ? 1 : 0, size.host);
}

std::vector<net::Address> ClusterOnLoopback::reserve(std::size_t count, const std::string& host) {
  std::vector<net::Address> addresses;
  for (std::size_t each = 0; each < count; ++each) {
    ports_.emplace_back();
    addresses.push_back({.host = host, .port = ports_.back().number()});
  }
  return addresses;
}

std::string ClusterOnLoopback::address(net::Job job, std::size_t index) const {
  return net::to_string(cluster_.address_of({.job = job, .index = index}));
}

std::string ClusterOnLoopback::list(net::Job job) const {
  return net::to_string(cluster_.tasks_of(job));
}

std::vector<std::string> ClusterOnLoopback::host_flags() const {
  std::vector<std::string> flags = {"--ps_hosts=" + list(net::Job::kPs)};
  if (!cluster_.workers.empty()) {
    flags.push_back("--worker_hosts=" + list(net::Job::kWorker));
  }
  if (!cluster_.chief.empty()) {
    flags.push_back("--chief_host=" + list(net::Job::kChief));
  }
  return flags;
}

std::string ClusterOnLoopback::tf_config(const std::string& type, std::size_t index) const {
  nlohmann::json config;
  for (const net::Job job : {net::Job::kPs, net::Job::kWorker, net::Job::kChief}) {
    for (const net::Address& address : cluster_.tasks_of(job)) {
      config["cluster"][std::string(net::job_name(job))].push_back(net::to_string(address));
    }
  }
  config["task"] = {{"type", type}, {"index", index}};
  config["environment"] = "cloud";
  return config.dump();
}

}  // namespace disttf::test_process
