// A server of a bucket, for any protocol: the interface for tests that hold for all of them.
#pragma once

#include <cstdint>
#include <filesystem>
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

// An emulator of Google Cloud Storage on a port of this machine: fake-gcs-server over a folder,
// which .ci/tools makes in build/tools. It honours the preconditions of uploads and compares
// checksums, but does not authenticate clients.
class GcsServer final : public BucketServer {
 public:
  // Returns whether it is installed; `why` says how to install it.
  [[nodiscard]] static bool is_installed(std::string& why);

  // Keeps its bucket, "bucket", in `folder`. Fails the test if the server is not ready in time.
  explicit GcsServer(std::filesystem::path folder);

  [[nodiscard]] std::map<std::string, std::string> variables_at(std::uint16_t port) const override;
  [[nodiscard]] std::string place() const override { return "gs://bucket"; }

 private:
  [[nodiscard]] ProcessOptions program() const override;

  const std::filesystem::path folder_;
};

// A real S3 server on a port of this machine: versitygw over a folder, which .ci/tools makes in
// build/tools.
class S3Server final : public BucketServer {
 public:
  // Returns whether it is installed; `why` says how to install it.
  [[nodiscard]] static bool is_installed(std::string& why);

  // Returns whether this user may mount a small file system for it.
  [[nodiscard]] static bool can_be_small();

  // Keeps its bucket, "bucket", in `folder`. `room`: the size of its file system, "30m", which is
  // removed with the server; empty: no limit. Fails the test if the server is not ready in time.
  explicit S3Server(std::filesystem::path folder, std::string room = {});

  [[nodiscard]] std::map<std::string, std::string> variables_at(std::uint16_t port) const override;
  [[nodiscard]] std::string place() const override { return "s3://bucket"; }
  // Returns the path of an object.
  [[nodiscard]] std::filesystem::path file_of(const std::string& key) const {
    return folder_ / "bucket" / key;
  }

 private:
  [[nodiscard]] ProcessOptions program() const override;

  const std::filesystem::path folder_;
  const std::string room_;
};

}  // namespace disttf::test_process
