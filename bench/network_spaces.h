// Hosts for a benchmark: network namespaces with a cable each to a switch, which is a bridge in a
// namespace of its own. Needs root, `ip` and `tc`.
#pragma once

#include <string>
#include <vector>

namespace disttf::bench {

// Removed with the object; what a killed run has left behind goes when the process ring makes its
// own.
class NetworkSpaces {
 public:
  // `rate`: of each cable in each direction, as tc says it ("100mbit"); its queue holds half a
  // second. Throws std::runtime_error where this process may not make them.
  NetworkSpaces(std::vector<std::string> hosts, const std::string& rate);
  ~NetworkSpaces() { remove(); }
  NetworkSpaces(const NetworkSpaces&) = delete;
  NetworkSpaces& operator=(const NetworkSpaces&) = delete;

  // What a shell command begins with that runs there: "ip netns exec NAME ".
  [[nodiscard]] std::string at(const std::string& host) const;
  [[nodiscard]] std::string address_of(const std::string& host) const;
  // Bytes that have come to the host, and left it, so far, headers of all layers included.
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
