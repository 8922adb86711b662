// A server that keeps a bucket, whichever protocol it speaks: what tests that hold for all of them
// know of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace disttf::test_process {

class BucketServer {
 public:
  BucketServer() = default;
  virtual ~BucketServer() = default;
  BucketServer(const BucketServer&) = delete;
  BucketServer& operator=(const BucketServer&) = delete;

  virtual void kill() = 0;   // and waits for its end
  virtual void start() = 0;  // again, on the same port
  virtual void stop() = 0;   // it answers nobody
  virtual void go_on() = 0;

  [[nodiscard]] virtual std::uint16_t port() const = 0;
  // What a client is told of it by its environment, when it is to ask at that port: the server's
  // own, or that of what stands before it.
  [[nodiscard]] virtual std::map<std::string, std::string> variables_at(
      std::uint16_t port) const = 0;
  [[nodiscard]] std::map<std::string, std::string> variables() const {
    return variables_at(port());
  }
  // "s3://bucket".
  [[nodiscard]] virtual std::string place() const = 0;
};

struct BucketKind {
  std::string name;
  bool (*is_installed)(std::string& why);
  std::unique_ptr<BucketServer> (*start)(const std::filesystem::path& folder);
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
