// main() of roles_test: GoogleTest, or the probe that child_process_test.cc starts, which prints
// its arguments and environment.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/roles/probe.h"

namespace {

using namespace disttf::roles;  // NOLINT(google-build-using-namespace): a main file

void write_progress(std::string_view argument) {
  constexpr std::string_view kFlag = "--progress_fd=";
  if (!argument.starts_with(kFlag)) {
    return;
  }
  const int fd = std::atoi(std::string(argument.substr(kFlag.size())).c_str());
  const std::string_view record = kProbeProgress;
  if (write(fd, record.data(), record.size()) < 0) {
    std::perror("progress");
  }
}

int probe(const std::vector<std::string_view>& arguments) {
  if (!arguments.empty() && arguments.front() == kProbeWaits) {
    std::puts("ready");
    std::fflush(stdout);
    constexpr unsigned kLimitSeconds = 60;  // longer than the test that waits for its end
    alarm(kLimitSeconds);
    pause();
  }
  std::puts("on standard output");
  std::fputs("on standard error\n", stderr);
  for (const std::string_view argument : arguments) {
    std::printf("argument %.*s\n", static_cast<int>(argument.size()), argument.data());
    write_progress(argument);
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::printf("environment %s\n", *entry);
  }
  char byte = 0;
  std::printf("standard input: %s\n", read(STDIN_FILENO, &byte, 1) == 0 ? "empty" : "not empty");
  std::printf("process group %d\n", static_cast<int>(getpgrp()));
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, nullptr, &blocked);
  std::printf("SIGTERM blocked: %s\n", sigismember(&blocked, SIGTERM) == 1 ? "yes" : "no");
  constexpr int kMostDescriptors = 256;
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) {
      std::printf("descriptor %d open\n", fd);
    }
  }
  return kProbeExitCode;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments.front() == kProbeArgument) {
    return probe({arguments.begin() + 1, arguments.end()});
  }
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
