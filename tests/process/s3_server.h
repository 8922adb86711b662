// A real S3 server on a port of this machine: versitygw over a folder, which .ci/tools makes in
// build/tools.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tests/process/bucket_server.h"
#include "tests/process/process.h"

namespace disttf::test_process {

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
