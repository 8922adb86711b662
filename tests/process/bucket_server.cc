#include "tests/process/bucket_server.h"

#include <gtest/gtest.h>

#include <csignal>
#include <vector>

#include "tests/process/process.h"

namespace disttf::test_process {

void BucketServer::start() {
  process_ = std::make_unique<Process>(program());
  EXPECT_TRUE(wait_until_listening(port())) << process_->report();
}

void BucketServer::kill() {
  process_->send(SIGKILL);
  EXPECT_FALSE(process_->wait().timed_out);
  process_.reset();
}

void BucketServer::stop() { process_->send(SIGSTOP); }

void BucketServer::go_on() { process_->send(SIGCONT); }

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

namespace {

constexpr const char* kUnshare = "/usr/bin/unshare";

std::filesystem::path gateway() {
  return source_directory() / "build" / "tools" / "versitygw" / "versitygw";
}

}  // namespace

bool S3Server::is_installed(std::string& why) {
  why = gateway().string() + " is not there: .ci/tools makes it";
  return std::filesystem::exists(gateway());
}

bool S3Server::can_be_small() {
  Process probe({.program = kUnshare,
                 .arguments = {"-m", "/bin/mount", "-t", "tmpfs", "tmpfs", "/mnt"},
                 .environment = {},
                 .working_directory = "/",
                 .name = "mount"});
  return probe.wait().exit_code == 0;
}

S3Server::S3Server(std::filesystem::path folder, std::string room)
    : folder_(std::move(folder)), room_(std::move(room)) {
  std::filesystem::create_directories(folder_ / "bucket");
  start();
}

ProcessOptions S3Server::program() const {
  std::vector<std::string> words = {gateway().string(),
                                    "--quiet",
                                    "--keep-alive",
                                    "--port",
                                    "127.0.0.1:" + std::to_string(port()),
                                    "--access",
                                    "AKIDTEST",
                                    "--secret",
                                    "a secret of the test",
                                    "posix",
                                    folder_.string()};
  if (!room_.empty()) {
    const std::vector<std::string> before = {
        kUnshare,
        "-m",
        "/bin/sh",
        "-c",
        "mount -t tmpfs -o size=\"$1\" tmpfs \"$2\" && shift 2 && exec \"$@\"",
        "sh",
        room_,
        (folder_ / "bucket").string()};
    words.insert(words.begin(), before.begin(), before.end());
  }
  return {.program = words.front(),
          .arguments = std::vector<std::string>(words.begin() + 1, words.end()),
          .environment = {},
          .working_directory = folder_,
          .name = "versitygw"};
}

std::map<std::string, std::string> S3Server::variables_at(std::uint16_t port) const {
  return {{"AWS_ENDPOINT_URL", "http://127.0.0.1:" + std::to_string(port)},
          {"AWS_ACCESS_KEY_ID", "AKIDTEST"},
          {"AWS_SECRET_ACCESS_KEY", "a secret of the test"},
          {"AWS_REGION", "us-east-1"},
          {"AWS_EC2_METADATA_DISABLED", "true"}};
}

}  // namespace disttf::test_process
