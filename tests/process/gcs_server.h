// An emulator of Google's Cloud Storage on a port of this machine: fake-gcs-server over a folder,
// which .ci/tools makes in build/tools. It heeds the preconditions of uploads
// and compares checksums, and asks nobody who they are.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tests/process/bucket_server.h"
#include "tests/process/process.h"

namespace disttf::test_process {

class GcsServer final : public BucketServer {
 public:
  // Whether it is installed; `why` says what to do where it is not.
  [[nodiscard]] static bool is_installed(std::string& why);

  // Keeps its buckets, of which there is one, "bucket", in `folder`. It is up when this returns, or
  // a test has failed.
  explicit GcsServer(std::filesystem::path folder);

  [[nodiscard]] std::map<std::string, std::string> variables_at(std::uint16_t port) const override;
  [[nodiscard]] std::string place() const override { return "gs://bucket"; }

 private:
  [[nodiscard]] ProcessOptions program() const override;

  const std::filesystem::path folder_;
};

}  // namespace disttf::test_process
