// Hosts for a benchmark: network namespaces, each with a link to a bridge in a namespace of its
// own. Needs root, `ip` and `tc`.
#pragma once

#include <string>
#include <vector>

namespace disttf::bench {

// The namespaces are removed with the object. Those of a killed run are removed when a process test
// creates its own.
class NetworkSpaces {
 public:
  // `rate`: of each link in each direction, in tc's format ("100mbit"); its queue holds half a
  // second. Throws std::runtime_error if this process may not create namespaces.
  NetworkSpaces(std::vector<std::string> hosts, const std::string& rate);
  ~NetworkSpaces() { remove(); }
  NetworkSpaces(const NetworkSpaces&) = delete;
  NetworkSpaces& operator=(const NetworkSpaces&) = delete;

  // The prefix of a shell command that runs on the host: "ip netns exec NAME ".
  [[nodiscard]] std::string at(const std::string& host) const;
  [[nodiscard]] std::string address_of(const std::string& host) const;
  // Bytes that the host has received and sent so far, headers of all layers included.
  [[nodiscard]] double received_by(const std::string& host) const;
  [[nodiscard]] double sent_by(const std::string& host) const;

 private:
  [[nodiscard]] std::string space_of(const std::string& host) const;
  [[nodiscard]] double counted(const std::string& host, const std::string& counter) const;
  void connect(const std::string& host, const std::string& rate) const;
  void remove() const noexcept;

  const std::vector<std::string> hosts_;
};

}  // namespace disttf::bench
