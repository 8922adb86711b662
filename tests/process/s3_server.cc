#include "tests/process/s3_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <csignal>
#include <thread>
#include <vector>

#include "data/file.h"
#include "tests/process/paths.h"

namespace disttf::test_process {
namespace {

constexpr const char* kUnshare = "/usr/bin/unshare";

std::filesystem::path gateway() {
  return source_directory() / "build" / "store_servers" / "versitygw";
}

bool is_listening(std::uint16_t port) {
  const data::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
         0;
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
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!is_listening(port_.number())) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << process_->report();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // polled, with a deadline
  }
}

void S3Server::kill() {
  process_->send(SIGKILL);
  EXPECT_FALSE(process_->wait().timed_out);
  process_.reset();
}

void S3Server::stop() { process_->send(SIGSTOP); }

void S3Server::go_on() { process_->send(SIGCONT); }

std::map<std::string, std::string> S3Server::variables() const {
  return {{"AWS_ENDPOINT_URL", "http://127.0.0.1:" + std::to_string(port_.number())},
          {"AWS_ACCESS_KEY_ID", "AKIDTEST"},
          {"AWS_SECRET_ACCESS_KEY", "a secret of the test"},
          {"AWS_REGION", "us-east-1"},
          {"AWS_EC2_METADATA_DISABLED", "true"}};
}

}  // namespace disttf::test_process
