// A server that keeps a bucket, whichever protocol it speaks: what tests that hold for all of them
// know of it.
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

  // On a port that stays the same. It is up when this returns, or a test has failed.
  void start();
  void kill();  // and waits for its end
  void stop();  // it answers nobody
  void go_on();

  [[nodiscard]] std::uint16_t port() const { return port_.number(); }
  // What a client is told of it by its environment, when it is to ask at that port: the server's
  // own, or that of what stands before it.
  [[nodiscard]] virtual std::map<std::string, std::string> variables_at(
      std::uint16_t port) const = 0;
  [[nodiscard]] std::map<std::string, std::string> variables() const {
    return variables_at(port());
  }
  // "s3://bucket".
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
  // As a test that failed is named.
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
