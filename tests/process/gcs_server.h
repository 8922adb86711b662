// An emulator of Google Cloud Storage on a port of this machine: fake-gcs-server over a folder,
// which .ci/tools makes in build/tools. It honours the preconditions of uploads and compares
// checksums, but does not authenticate clients.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tests/process/bucket_server.h"
#include "tests/process/process.h"

namespace disttf::test_process {

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

}  // namespace disttf::test_process
