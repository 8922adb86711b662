#include "bench/network_spaces.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "bench/launch.h"

namespace disttf::bench {
namespace {

constexpr const char* kSwitch = "switch";

void must(const std::string& command) {
  int exit_code = 0;
  const std::string output = output_of(command, &exit_code);
  if (exit_code != 0) {
    throw std::runtime_error(command + ": " + output.substr(0, output.find('\n')));
  }
}

}  // namespace

NetworkSpaces::NetworkSpaces(std::vector<std::string> hosts, const std::string& rate)
    : hosts_(std::move(hosts)) {
  try {
    must("ip netns add " + space_of(kSwitch));
    must("ip -n " + space_of(kSwitch) + " link add br0 type bridge");
    must("ip -n " + space_of(kSwitch) + " link set br0 up");
    for (const std::string& host : hosts_) {
      connect(host, rate);
    }
  } catch (const std::exception&) {
    remove();
    throw;
  }
}

void NetworkSpaces::connect(const std::string& host, const std::string& rate) const {
  const std::string space = space_of(host);
  const std::string center = space_of(kSwitch);
  must("ip netns add " + space);
  must("ip -n " + center + " link add " + host + " type veth peer name eth0 netns " + space);
  must("ip -n " + center + " link set " + host + " master br0 up");
  must("ip -n " + space + " link set lo up");
  must("ip -n " + space + " address add " + address_of(host) + "/24 dev eth0");
  must("ip -n " + space + " link set eth0 up");
  const std::string shape = " root tbf rate " + rate + " burst 256kb latency 500ms";
  must("tc -n " + space + " qdisc add dev eth0" + shape);
  must("tc -n " + center + " qdisc add dev " + host + shape);
}

std::string NetworkSpaces::space_of(const std::string& host) const {
  return "disttf-" + std::to_string(getpid()) + "-" + host;
}

std::string NetworkSpaces::at(const std::string& host) const {
  return "ip netns exec " + space_of(host) + " ";
}

std::string NetworkSpaces::address_of(const std::string& host) const {
  const auto number = std::ranges::find(hosts_, host) - hosts_.begin();
  return "10.98.0." + std::to_string(number + 1);
}

double NetworkSpaces::received_by(const std::string& host) const {
  return counted(host, "rx_bytes");
}

double NetworkSpaces::sent_by(const std::string& host) const { return counted(host, "tx_bytes"); }

double NetworkSpaces::counted(const std::string& host, const std::string& counter) const {
  return std::stod(output_of(at(host) + "cat /sys/class/net/eth0/statistics/" + counter));
}

void NetworkSpaces::remove() const noexcept {
  std::vector<std::string> all = hosts_;
  all.emplace_back(kSwitch);
  for (const std::string& host : all) {
    try {
      static_cast<void>(output_of("ip netns del " + space_of(host)));
    } catch (const std::exception&) {  // no shell could be started: nothing more can be done
    }
  }
}

}  // namespace disttf::bench
