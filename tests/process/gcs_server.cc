#include "tests/process/gcs_server.h"

#include <vector>

#include "tests/process/paths.h"

namespace disttf::test_process {
namespace {

std::filesystem::path emulator() {
  return source_directory() / "build" / "tools" / "fake_gcs_server" / "fake-gcs-server";
}

}  // namespace

bool GcsServer::is_installed(std::string& why) {
  why = emulator().string() + " is not there: .ci/tools makes it";
  return std::filesystem::exists(emulator());
}

GcsServer::GcsServer(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::filesystem::create_directories(folder_ / "bucket");
  start();
}

ProcessOptions GcsServer::program() const {
  return {.program = emulator().string(),
          .arguments = {"-backend", "filesystem", "-filesystem-root", folder_.string(), "-scheme",
                        "http", "-host", "127.0.0.1", "-port", std::to_string(port()), "-log-level",
                        "error"},
          .environment = {},
          .working_directory = folder_,
          .name = "fake-gcs-server"};
}

std::map<std::string, std::string> GcsServer::variables_at(std::uint16_t port) const {
  return {{"STORAGE_EMULATOR_HOST", "127.0.0.1:" + std::to_string(port)}};
}

}  // namespace disttf::test_process
