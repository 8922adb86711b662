// main() of roles_test: GoogleTest, or the probe that child_process_test.cc starts, which prints
// its arguments and environment.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/memory/program_channel.h"
#include "run/program/program_message.h"
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

// The number after a flag of `arguments`, "--name=".
int number_after(const std::vector<std::string_view>& arguments, std::string_view flag) {
  for (const std::string_view argument : arguments) {
    if (argument.starts_with(flag)) {
      return std::atoi(std::string(argument.substr(flag.size())).c_str());
    }
  }
  return -1;
}

// A task that makes one step with each of two programs: it prints what the supervisor tells it, and
// the text that each program sends. The first one dies when it gets an answer.
int be_task(const std::vector<std::string_view>& arguments) {
  const int supervisor = number_after(arguments, "--program_fd=");
  std::array<std::byte, 256> bytes{};
  std::vector<disttf::net::Descriptor> descriptors;
  std::string why;
  std::uint64_t programs = 0;
  while (true) {
    const auto received = disttf::net::receive_packet(supervisor, bytes, descriptors);
    const auto packet = decode(std::span(bytes).first(received.size), why);
    if (received.error || !packet) return 1;
    std::printf("%s %d, signal %d\n", name_of(packet->message.kind).c_str(),
                static_cast<int>(packet->message.step), static_cast<int>(packet->message.count));
    if (packet->message.kind != ProgramKind::kStarted) continue;
    ++programs;
    const auto answer = [&](ProgramKind kind) {
      const auto header = encode({.kind = kind, .step = programs}, 0);
      static_cast<void>(disttf::net::send_packet(supervisor, header, {}));
    };
    std::vector<disttf::net::Descriptor> none;
    const disttf::net::Descriptor program = std::move(descriptors.front());
    const auto text = disttf::net::receive_packet(program.number(), bytes, none);
    std::printf("program: %.*s", static_cast<int>(text.size),
                reinterpret_cast<const char*>(bytes.data()));  // NOLINT
    // Before the program gets its answer, and dies or ends of it.
    answer(programs == 1 ? ProgramKind::kSteady : ProgramKind::kRelease);
    static_cast<void>(disttf::net::send_packet(program.number(), std::span(bytes).first(1), {}));
    if (programs == 2) break;
  }
  std::fflush(stdout);
  return 0;
}

int probe(const std::vector<std::string_view>& arguments) {
  if (!arguments.empty() && arguments.front() == kProbeTask) {
    return be_task(arguments);
  }
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
