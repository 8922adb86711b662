// A real server of S3 on a port of this machine: versitygw over a folder, which .ci/tools
// makes in build/tools.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tests/process/bucket_server.h"
#include "tests/process/process.h"

namespace disttf::test_process {

class S3Server final : public BucketServer {
 public:
  // Whether it is installed; `why` says what to do where it is not.
  [[nodiscard]] static bool is_installed(std::string& why);

  // Whether this user may mount what a small one lies on.
  [[nodiscard]] static bool can_be_small();

  // Keeps its buckets, of which there is one, "bucket", in `folder`. `room`: how much may lie in
  // it, "30m", on a file system that goes with the server; empty: any. It is up when this returns,
  // or a test has failed.
  explicit S3Server(std::filesystem::path folder, std::string room = {});

  [[nodiscard]] std::map<std::string, std::string> variables_at(std::uint16_t port) const override;
  [[nodiscard]] std::string place() const override { return "s3://bucket"; }
  // Where an object lies.
  [[nodiscard]] std::filesystem::path file_of(const std::string& key) const {
    return folder_ / "bucket" / key;
  }

 private:
  [[nodiscard]] ProcessOptions program() const override;

  const std::filesystem::path folder_;
  const std::string room_;
};

}  // namespace disttf::test_process
