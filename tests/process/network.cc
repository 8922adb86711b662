#include "tests/process/network.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "tests/process/process.h"

namespace disttf::test_process {
namespace {

namespace fs = std::filesystem;

const std::string kPrefix = "disttf-";
const fs::path kSpaces = "/run/netns";     // the names of `ip netns`
const fs::path kSpacesEtc = "/etc/netns";  // files that `ip netns exec` mounts over /etc

fs::path find_ip() {
  for (const char* place : {"/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip", "/bin/ip"}) {
    if (access(place, X_OK) == 0) {
      return place;
    }
  }
  return {};
}

// Removes the namespaces whose process (the number in the name) has ended.
void remove_spaces_of_the_dead(const fs::path& ip) {
  std::error_code error;
  std::vector<std::string> left;
  // A test killed during create() or its destructor may have left only one of the two.
  for (const fs::path& folder : {kSpaces, kSpacesEtc}) {
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      left.push_back(entry.path().filename());
    }
  }
  for (const std::string& name : left) {
    if (!name.starts_with(kPrefix)) {
      continue;
    }
    const int pid = std::atoi(name.c_str() + kPrefix.size());
    // EPERM means that the process exists, so its namespaces stay.
    if (pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH) {
      continue;
    }
    Process remove({.program = ip,
                    .arguments = {"netns", "del", name},
                    .environment = {},
                    .working_directory = "/",
                    .name = "ip"});
    remove.wait();
    fs::remove_all(kSpacesEtc / name, error);
  }
}

}  // namespace

std::unique_ptr<Network> Network::create(const std::vector<std::string>& hosts, std::string& why) {
  const fs::path ip = find_ip();
  if (ip.empty()) {
    why = "network namespaces need the program ip (Debian: iproute2)";
    return nullptr;
  }
  remove_spaces_of_the_dead(ip);
  std::unique_ptr<Network> network(new Network(ip));
  try {
    network->build(hosts);
  } catch (const std::exception& error) {
    why = std::string("this process may not create network namespaces: ") + error.what();
    return nullptr;
  }
  return network;
}

Network::~Network() {
  for (const auto& [name, host] : hosts_) {
    try {
      ip({"netns", "del", host.space});
    } catch (const std::exception&) {  // the namespace was never made
    }
    std::error_code ignored;
    fs::remove_all(kSpacesEtc / host.space, ignored);
  }
}

// The switch is a host without an address.
void Network::build(const std::vector<std::string>& hosts) {
  const std::string prefix = kPrefix + std::to_string(getpid()) + "-";
  const std::string center = prefix + "switch";
  hosts_["switch"] = {.address = {}, .space = center};
  ip({"netns", "add", center});
  ip({"-n", center, "link", "add", "bridge", "type", "bridge"});
  ip({"-n", center, "link", "set", "bridge", "up"});
  int number = 0;
  for (const std::string& name : hosts) {
    const Host host{.address = "10.99.0." + std::to_string(++number), .space = prefix + name};
    hosts_[name] = host;
    names_[name] = name;
    ip({"netns", "add", host.space});
    ip({"-n", center, "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns",
        host.space});
    ip({"-n", host.space, "link", "set", "lo", "up"});
    ip({"-n", host.space, "link", "set", "eth0", "up"});
    ip({"-n", host.space, "address", "add", host.address + "/24", "dev", "eth0"});
    ip({"-n", center, "link", "set", name, "up", "master", "bridge"});
    fs::create_directories(kSpacesEtc / host.space);
  }
  write_hosts();
  // No name server listens there, so an unknown name fails at once.
  write_etc("resolv.conf", "nameserver 127.0.0.1\n");
}

void Network::ip(const std::vector<std::string>& words) const {
  static_cast<void>(printed_by_ip(words));
}

std::string Network::printed_by_ip(const std::vector<std::string>& words) const {
  Process process({.program = ip_,
                   .arguments = words,
                   .environment = {},
                   .working_directory = "/",
                   .name = "ip"});
  if (process.wait().exit_code != 0) {
    throw std::runtime_error(process.report());
  }
  return process.standard_output();
}

// Writes in place: a new file would not be visible where the old one is already mounted.
void Network::write_hosts() const {
  std::string text = "127.0.0.1 localhost\n";
  for (const auto& [name, host] : names_) {
    text += hosts_.at(host).address + " " + name + "\n";
  }
  write_etc("hosts", text);
}

void Network::write_etc(const std::string& file, const std::string& text) const {
  for (const auto& [name, host] : hosts_) {
    const fs::path path = kSpacesEtc / host.space / file;
    if (name != "switch" && !(std::ofstream(path) << text).flush()) {
      throw std::runtime_error("cannot write " + path.string());
    }
  }
}

std::vector<std::string> Network::words_on(const std::string& host) const {
  return {"netns", "exec", space_of(host)};
}

std::vector<std::string> Network::words_alone_on(const std::string& host) const {
  std::vector<std::string> words = words_on(host);
  for (const char* word : {"/usr/bin/unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}) {
    words.emplace_back(word);
  }
  return words;
}

std::uint64_t Network::sent_by(const std::string& host) const {
  return std::stoull(printed_by_ip(
      {"netns", "exec", space_of(host), "cat", "/sys/class/net/eth0/statistics/tx_bytes"}));
}

std::string Network::shape(const std::string& host, std::string& why) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> ways = {
      // A kernel may lack netem, so tbf without a delay is the second choice.
      {"100 Mb/s, 2 ms", {"netem", "delay", "2ms", "rate", "100mbit", "limit", "10000"}},
      {"100 Mb/s", {"tbf", "rate", "100mbit", "burst", "32k", "latency", "400ms"}}};
  for (const auto& [what, discipline] : ways) {
    try {
      for (const auto& [space, device] :
           {std::pair(space_of(host), std::string("eth0")), std::pair(space_of("switch"), host)}) {
        std::vector<std::string> words = {"netns",   "exec", space,  "tc",  "qdisc",
                                          "replace", "dev",  device, "root"};
        words.insert(words.end(), discipline.begin(), discipline.end());
        ip(words);
      }
      return what;
    } catch (const std::runtime_error& error) {
      why = error.what();
    }
  }
  return {};
}

std::uint64_t Network::shaped_by(const std::string& host) const {
  const std::string text =
      printed_by_ip({"netns", "exec", space_of(host), "tc", "-s", "qdisc", "show", "dev", "eth0"});
  constexpr std::string_view kSent = " Sent ";
  const std::size_t at = text.find(kSent);
  return at == std::string::npos ? 0 : std::stoull(text.substr(at + kSent.size()));
}

std::string Network::space_of(const std::string& host) const { return hosts_.at(host).space; }

const std::string& Network::address_of(const std::string& host) const {
  return hosts_.at(host).address;
}

void Network::point(const std::string& name, const std::string& host) {
  names_[name] = host;
  write_hosts();
}

void Network::black_hole(const std::string& name, const std::string& silent) {
  for (const auto& [host, unused] : hosts_) {
    if (host != "switch" && host != silent) {
      // Lookups must time out; without this the host would answer that no server listens.
      drop_way(host, silent);
    }
  }
  write_etc("resolv.conf", "nameserver " + hosts_.at(silent).address + "\n");
  names_.erase(name);
  write_hosts();
}

void Network::pull_cable(const std::string& host) {
  ip({"-n", space_of("switch"), "link", "set", host, "down"});
}

void Network::plug_in(const std::string& host) {
  ip({"-n", space_of("switch"), "link", "set", host, "up"});
}

void Network::drop_all(const std::string& host) {
  ip({"-n", space_of("switch"), "link", "set", host, "nomaster"});
}

void Network::drop_none(const std::string& host) {
  ip({"-n", space_of("switch"), "link", "set", host, "master", "bridge"});
}

// Sends frames to a hardware address that no host has.
void Network::drop_way(const std::string& from, const std::string& to) {
  ip({"-n", space_of(from), "neighbor", "replace", hosts_.at(to).address, "lladdr",
      "02:00:00:00:00:99", "dev", "eth0", "nud", "permanent"});
}

}  // namespace disttf::test_process
