// A network of hosts for the process ring: each host is a network namespace with one cable to a
// switch, which is a namespace with a bridge. Nothing leads out of it or into it.
//
// Needs root and the programs `ip` and `tc` (Debian: iproute2). Hosts know each other by name,
// through a hosts file of their own (`ip netns exec` lays /etc/netns/NAME over /etc); no name
// server answers. The namespaces' names carry this process's id; all is removed when the object
// goes, and what a killed test has left behind when the next one comes. Used by one thread.
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
  // nullptr and the reason when this process may not create namespaces.
  static std::unique_ptr<Network> create(const std::vector<std::string>& hosts, std::string& why);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // The program and the words that run what follows them on the host.
  [[nodiscard]] const std::filesystem::path& program() const { return ip_; }
  [[nodiscard]] std::vector<std::string> words_on(const std::string& host) const;

  // The same, as on a machine of its own: what runs there sees no process of the others.
  [[nodiscard]] std::vector<std::string> words_alone_on(const std::string& host) const;

  [[nodiscard]] const std::string& address_of(const std::string& host) const;
  // Bytes that have left the host on its cable.
  [[nodiscard]] std::uint64_t sent_by(const std::string& host) const;

  // From now on every host, and what runs there already, finds `host` when it looks up `name`. At
  // first each name means the host of that name.
  void point(const std::string& name, const std::string& host);

  // From now on nobody finds out what `name` means: whoever looks it up asks a name server that is
  // as silent as a cable that nobody is at. `silent`: a host on which nothing runs.
  void silence(const std::string& name, const std::string& silent);

  // The cable carries 100 Mb/s in each direction, and takes 2 ms where the kernel has netem.
  // Returns what it is now; empty and the reason where the kernel can do neither.
  std::string shape(const std::string& host, std::string& why);
  // Bytes of sent_by() that were held to that.
  [[nodiscard]] std::uint64_t shaped_by(const std::string& host) const;

  // The cable at the switch's end: pulled, the host's own interface has no carrier.
  void pull_cable(const std::string& host);
  void plug_in(const std::string& host);
  // The host's cable stays in, but the switch drops all that comes from it or is meant for it.
  void drop_all(const std::string& host);
  void drop_none(const std::string& host);
  // What one host sends to another is dropped on the way; the other direction works.
  void drop_way(const std::string& from, const std::string& to);

 private:
  explicit Network(std::filesystem::path ip) : ip_(std::move(ip)) {}
  // These throw std::runtime_error with what `ip` said.
  void build(const std::vector<std::string>& hosts);
  void ip(const std::vector<std::string>& words) const;
  [[nodiscard]] std::string printed_by_ip(const std::vector<std::string>& words) const;
  void write_hosts() const;
  // Into a file of every host's own /etc.
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
