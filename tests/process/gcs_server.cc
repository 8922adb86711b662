#include "tests/process/gcs_server.h"

#include <gtest/gtest.h>

#include <csignal>
#include <vector>

#include "tests/process/listening.h"
#include "tests/process/paths.h"

namespace disttf::test_process {
namespace {

std::filesystem::path emulator() {
  return source_directory() / "build" / "store_servers" / "fake-gcs-server";
}

}  // namespace

bool GcsServer::is_installed(std::string& why) {
  why = emulator().string() + " is not there: .ci/store_servers installs it";
  return std::filesystem::exists(emulator());
}

GcsServer::GcsServer(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::filesystem::create_directories(folder_ / "bucket");
  start();
}

void GcsServer::start() {
  process_ = std::make_unique<Process>(
      ProcessOptions{.program = emulator().string(),
                     .arguments = {"-backend", "filesystem", "-filesystem-root", folder_.string(),
                                   "-scheme", "http", "-host", "127.0.0.1", "-port",
                                   std::to_string(port_.number()), "-log-level", "error"},
                     .environment = {},
                     .working_directory = folder_,
                     .name = "fake-gcs-server"});
  EXPECT_TRUE(wait_until_listening(port_.number())) << process_->report();
}

void GcsServer::kill() {
  process_->send(SIGKILL);
  EXPECT_FALSE(process_->wait().timed_out);
  process_.reset();
}

void GcsServer::stop() { process_->send(SIGSTOP); }

void GcsServer::go_on() { process_->send(SIGCONT); }

std::map<std::string, std::string> GcsServer::variables_at(std::uint16_t port) const {
  return {{"STORAGE_EMULATOR_HOST", "127.0.0.1:" + std::to_string(port)}};
}

}  // namespace disttf::test_process
