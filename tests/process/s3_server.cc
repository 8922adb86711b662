#include "tests/process/s3_server.h"

#include <gtest/gtest.h>

#include <csignal>
#include <vector>

#include "tests/process/listening.h"
#include "tests/process/paths.h"

namespace disttf::test_process {
namespace {

constexpr const char* kUnshare = "/usr/bin/unshare";

std::filesystem::path gateway() {
  return source_directory() / "build" / "store_servers" / "versitygw";
}

}  // namespace

bool S3Server::is_installed(std::string& why) {
  why = gateway().string() + " is not there: .ci/store_servers installs it";
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

void S3Server::start() {
  std::vector<std::string> words = {gateway().string(),
                                    "--quiet",
                                    "--keep-alive",
                                    "--port",
                                    "127.0.0.1:" + std::to_string(port_.number()),
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
  process_ = std::make_unique<Process>(
      ProcessOptions{.program = words.front(),
                     .arguments = std::vector<std::string>(words.begin() + 1, words.end()),
                     .environment = {},
                     .working_directory = folder_,
                     .name = "versitygw"});
  EXPECT_TRUE(wait_until_listening(port_.number())) << process_->report();
}

void S3Server::kill() {
  process_->send(SIGKILL);
  EXPECT_FALSE(process_->wait().timed_out);
  process_.reset();
}

void S3Server::stop() { process_->send(SIGSTOP); }

void S3Server::go_on() { process_->send(SIGCONT); }

std::map<std::string, std::string> S3Server::variables_at(std::uint16_t port) const {
  return {{"AWS_ENDPOINT_URL", "http://127.0.0.1:" + std::to_string(port)},
          {"AWS_ACCESS_KEY_ID", "AKIDTEST"},
          {"AWS_SECRET_ACCESS_KEY", "a secret of the test"},
          {"AWS_REGION", "us-east-1"},
          {"AWS_EC2_METADATA_DISABLED", "true"}};
}

}  // namespace disttf::test_process
