// A network of hosts for process tests: each host is a network namespace with one link to a switch,
// which is a namespace with a bridge. The network is isolated from the outside.
//
// Needs root and the programs `ip` and `tc` (Debian: iproute2). Hosts resolve each other's names
// through a hosts file (`ip netns exec` mounts /etc/netns/NAME over /etc); there is no name server.
// The namespaces' names contain this process's id. All of them are removed with the object; those
// of a killed test are removed by the next test. Used by one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace disttf::test_process {

class Network {
 public:
  // Returns nullptr and the reason if this process may not create namespaces.
  static std::unique_ptr<Network> create(const std::vector<std::string>& hosts, std::string& why);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // The program and arguments that run the following words on the host.
  [[nodiscard]] const std::filesystem::path& program() const { return ip_; }
  [[nodiscard]] std::vector<std::string> words_on(const std::string& host) const;

  // The same in a PID namespace, as on a separate machine: the processes see none of other hosts.
  [[nodiscard]] std::vector<std::string> words_alone_on(const std::string& host) const;

  [[nodiscard]] const std::string& address_of(const std::string& host) const;
  // Returns the bytes that the host has sent on its link.
  [[nodiscard]] std::uint64_t sent_by(const std::string& host) const;

  // From now on every host, and the processes that already run there, resolve `name` to `host`. At
  // first each name means the host of that name.
  void point(const std::string& name, const std::string& host);

  // From now on `name` cannot be resolved: a lookup asks a name server that never answers.
  // `silent`: a host on which nothing runs.
  void black_hole(const std::string& name, const std::string& silent);

  // Limits the link to 100 Mb/s in each direction, with a delay of 2 ms if the kernel has netem.
  // Returns the applied limits; empty and the reason if the kernel supports neither.
  std::string shape(const std::string& host, std::string& why);
  // Returns the bytes of sent_by() that passed through that limit.
  [[nodiscard]] std::uint64_t shaped_by(const std::string& host) const;

  // Pulls the link at the switch's end: the host's own interface has no carrier.
  void pull_cable(const std::string& host);
  void plug_in(const std::string& host);
  // The host's link stays up, but the switch drops all frames from it and to it.
  void drop_all(const std::string& host);
  void drop_none(const std::string& host);
  // Drops frames from one host to another; the other direction works.
  void drop_way(const std::string& from, const std::string& to);

 private:
  explicit Network(std::filesystem::path ip) : ip_(std::move(ip)) {}
  // These throw std::runtime_error with the output of `ip`.
  void build(const std::vector<std::string>& hosts);
  void ip(const std::vector<std::string>& words) const;
  [[nodiscard]] std::string printed_by_ip(const std::vector<std::string>& words) const;
  void write_hosts() const;
  // Writes a file into every host's own /etc.
  void write_etc(const std::string& file, const std::string& text) const;
  [[nodiscard]] std::string space_of(const std::string& host) const;

  struct Host {
    std::string address;
    std::string space;  // its namespace
  };

  std::filesystem::path ip_;
  std::map<std::string, Host> hosts_;
  std::map<std::string, std::string> names_;  // name to host
};

}  // namespace disttf::test_process
