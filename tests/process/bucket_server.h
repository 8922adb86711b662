// A server of a bucket, for any protocol: the interface for tests that hold for all of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>

#include "tests/process/cluster_on_loopback.h"
#include "tests/process/process.h"

namespace disttf::test_process {

class BucketServer {
 public:
  BucketServer() = default;
  virtual ~BucketServer() = default;
  BucketServer(const BucketServer&) = delete;
  BucketServer& operator=(const BucketServer&) = delete;

  // Starts on a port that stays the same. Fails the test if the server is not ready in time.
  void start();
  void kill();  // waits for its end
  void stop();  // until go_on() the server does not answer
  void go_on();

  [[nodiscard]] std::uint16_t port() const { return port_.number(); }
  // Returns the environment variables for a client that connects to that port: the server's own, or
  // that of a proxy in front of it.
  [[nodiscard]] virtual std::map<std::string, std::string> variables_at(
      std::uint16_t port) const = 0;
  [[nodiscard]] std::map<std::string, std::string> variables() const {
    return variables_at(port());
  }
  // Returns "s3://bucket".
  [[nodiscard]] virtual std::string place() const = 0;

 private:
  [[nodiscard]] virtual ProcessOptions program() const = 0;

  const ReservedPort port_;
  std::unique_ptr<Process> process_;
};

struct BucketKind {
  std::string name;
  bool (*is_installed)(std::string& why);
  std::unique_ptr<BucketServer> (*start)(const std::filesystem::path& folder);
  // The name in a failed test's parameters.
  friend void PrintTo(const BucketKind& kind, std::ostream* out) { *out << kind.name; }
};

template <typename Server>
BucketKind bucket_kind(const std::string& name) {
  return {.name = name,
          .is_installed = &Server::is_installed,
          .start = [](const std::filesystem::path& folder) -> std::unique_ptr<BucketServer> {
            return std::make_unique<Server>(folder);
          }};
}

}  // namespace disttf::test_process
