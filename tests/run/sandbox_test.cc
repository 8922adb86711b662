// What the kernel denies a process in a sandbox. Each case is a process of its own, which allows
// one directory and tries files inside and outside it.
#include "run/process/sandbox.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

#include "data/file.h"
#include "run/process/confinement.h"
#include "tests/data/scratch.h"
#include "tests/support/loopback.h"

namespace disttf::roles {
namespace {

namespace fs = std::filesystem;

constexpr int kNotConfined = 255;

// Returns what `act` returns in a process that is confined to `policy`.
int within(const SandboxPolicy& policy, const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    static_cast<void>(confine(ProcessKind::kPrograms));  // denies nothing that is tried here
    _exit(enforce_sandbox(policy).is_in_force ? act() : kNotConfined);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  return WEXITSTATUS(status);
}

// Returns 0 if the call has succeeded.
int errno_of(long result) { return result < 0 ? errno : 0; }

int error_of_opening(const fs::path& path, int flags = O_RDONLY) {
  return errno_of(open(path.c_str(), flags | O_CLOEXEC, 0600));
}

// A listening socket on 127.0.0.1.
class Listening {
 public:
  Listening() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = test_support::loopback(0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 8), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~Listening() { close(fd_); }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  const int fd_;
  std::uint16_t port_ = 0;
};

int error_of_connecting(std::uint16_t port) {
  const sockaddr_in address = test_support::loopback(port);
  return errno_of(connect(socket(AF_INET, SOCK_STREAM, 0),
                          reinterpret_cast<const sockaddr*>(&address), sizeof(address)));
}

int error_of_binding(std::uint16_t port) {
  const sockaddr_in address = test_support::loopback(port);
  return errno_of(bind(socket(AF_INET, SOCK_STREAM, 0), reinterpret_cast<const sockaddr*>(&address),
                       sizeof(address)));
}

class SandboxTest : public testing::Test {
 protected:
  void SetUp() override {
    const int version = probe_sandbox().version;
    if (version < 2) {
      GTEST_SKIP() << "this kernel, or this container, has Landlock in version " << version;
    }
    has_ports_ = version >= 4;
    has_signals_ = version >= 6;
    for (const char* folder : {"named", "named/below", "other"}) {
      fs::create_directory(at(folder));
      data::test::write(at(folder) / "file", data::test::bytes_of("text"));
    }
  }
  [[nodiscard]] fs::path at(const std::string& name) const { return scratch_.path() / name; }

  data::test::ScratchDirectory scratch_;
  bool has_ports_ = false;
  bool has_signals_ = false;
};

TEST_F(SandboxTest, OpensNoFileThatIsNotNamed) {
  const auto opening = [this](const char* name) {
    return within({.read = {at("named")}}, [&] { return error_of_opening(at(name)); });
  };
  EXPECT_EQ(opening("named/file"), 0);
  EXPECT_EQ(opening("named/below/file"), 0);
  EXPECT_EQ(opening("other/file"), EACCES);
  EXPECT_EQ(opening("other"), EACCES) << "nor is it listed";
}

TEST_F(SandboxTest, ALinkLeadsNowhereElse) {
  fs::create_symlink(at("other/file"), at("named/link"));
  EXPECT_EQ(within({.read = {at("named")}}, [&] { return error_of_opening(at("named/link")); }),
            EACCES);
  EXPECT_EQ(within({.read = {at("named"), at("named/link")}},
                   [&] { return error_of_opening(at("named/link")); }),
            0)
      << "which is itself named";
}

TEST_F(SandboxTest, WritesNothingWhereItOnlyReads) {
  const auto in_named = [this](const std::function<int()>& act) {
    return within({.read = {at("named")}}, act);
  };
  EXPECT_EQ(in_named([&] { return error_of_opening(at("named/file"), O_WRONLY); }), EACCES);
  EXPECT_EQ(in_named([&] { return error_of_opening(at("named/new"), O_WRONLY | O_CREAT); }),
            EACCES);
  EXPECT_EQ(in_named([&] { return errno_of(mkdir(at("named/new").c_str(), 0700)); }), EACCES);
  EXPECT_EQ(in_named([&] { return errno_of(unlink(at("named/file").c_str())); }), EACCES);
}

TEST_F(SandboxTest, ChangesWhatItMayChangeAndNothingBeside) {
  const auto change = [this](const char* folder) {
    const fs::path in = at(folder);
    const auto bytes = data::test::bytes_of("new");
    if (const int error = error_of_opening(in / "file", O_WRONLY | O_TRUNC)) return error;
    try {
      data::write_file_atomically(in / "whole", bytes);
    } catch (const std::system_error& error) {
      return error.code().value();
    }
    if (const int error = errno_of(mkdir((in / "new").c_str(), 0700))) return error;
    const int error = errno_of(rename((in / "whole").c_str(), (in / "new/whole").c_str()));
    return error != 0 ? error : errno_of(unlink((in / "new/whole").c_str()));
  };
  const SandboxPolicy policy{.read = {"/proc"}, .changed = {at("named")}};
  EXPECT_EQ(within(policy, [&] { return change("named"); }), 0);
  EXPECT_EQ(within(policy, [&] { return change("other"); }), EACCES);
  EXPECT_EQ(within(policy,
                   [&] {
                     return errno_of(rename(at("named/file").c_str(), at("other/stolen").c_str()));
                   }),
            EACCES);
}

TEST_F(SandboxTest, RunsNoFile) {
  const auto run_true = [] {
    std::array<char*, 2> words = {const_cast<char*>("true"), nullptr};
    execv("/bin/true", words.data());
    return errno;
  };
  EXPECT_EQ(within({.read = {"/"}}, run_true), EACCES);
}

TEST_F(SandboxTest, ConnectsToNoPortThatIsNotNamed) {
  if (!has_ports_) GTEST_SKIP() << "this kernel's Landlock knows no ports";
  const Listening named;
  const Listening other;
  const SandboxPolicy policy{.connects_to = {{named.port()}}};
  EXPECT_EQ(within(policy, [&] { return error_of_connecting(named.port()); }), 0);
  EXPECT_EQ(within(policy, [&] { return error_of_connecting(other.port()); }), EACCES);
  EXPECT_EQ(within({}, [&] { return error_of_connecting(other.port()); }), 0)
      << "without a list of ports, any port is allowed";
}

TEST_F(SandboxTest, ListensOnNoPortThatIsNotNamed) {
  if (!has_ports_) GTEST_SKIP() << "this kernel's Landlock knows no ports";
  std::uint16_t port = 0;
  {
    const Listening free;
    port = free.port();
  }
  EXPECT_EQ(within({.listens_on = {{port}}}, [&] { return error_of_binding(port); }), 0);
  EXPECT_EQ(within({.listens_on = {{0}}}, [&] { return error_of_binding(0); }), 0);
  EXPECT_EQ(within({.listens_on = {{0}}}, [&] { return error_of_binding(port); }), EACCES);
}

TEST_F(SandboxTest, SignalsNoOtherProcess) {
  if (!has_signals_) GTEST_SKIP() << "this kernel's Landlock knows no signals";
  EXPECT_EQ(within({}, [] { return errno_of(kill(getppid(), 0)); }), EPERM);
  EXPECT_EQ(within({}, [] { return errno_of(kill(getpid(), 0)); }), 0);
}

// A child tries to read from this process, which belongs to an ordinary user: root may read
// everything.
int look_into_parent(const std::function<int(const std::function<int()>&)>& in_child,
                     const std::string& name) {
  const pid_t parent = fork();
  if (parent == 0) {
    constexpr uid_t kNobody = 65'534;
    if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) _exit(kNotConfined);
    prctl(PR_SET_DUMPABLE, 1);  // the change of user has cleared it
    const std::string path = "/proc/" + std::to_string(getpid()) + "/" + name;
    _exit(in_child([&path] { return error_of_opening(path); }));
  }
  int status = 0;
  EXPECT_EQ(waitpid(parent, &status, 0), parent);
  return WEXITSTATUS(status);
}

TEST_F(SandboxTest, SeesNoSecretOfAnotherProcessEvenWhereItReadsProc) {
  const auto kept = [](const std::function<int()>& act) {
    return within({.read = {"/proc"}}, act);
  };
  const auto not_kept = [](const std::function<int()>& act) {
    const pid_t child = fork();
    if (child == 0) _exit(act());
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(look_into_parent(kept, "stat"), 0);
  EXPECT_EQ(look_into_parent(kept, "environ"), EACCES);
  EXPECT_EQ(look_into_parent(not_kept, "environ"), 0) << "which else is open to it";
}

TEST_F(SandboxTest, HoldsForThreadsThatAreStartedLater) {
  const auto in_a_thread = [this] {
    int error = -1;
    std::thread([&] { error = error_of_opening(at("other/file")); }).join();
    return error;
  };
  EXPECT_EQ(within({.read = {at("named")}}, in_a_thread), EACCES);
}

TEST_F(SandboxTest, WhatIsOpenStaysSo) {
  const data::FileDescriptor file(open(at("other/file").c_str(), O_RDWR | O_CLOEXEC));
  const auto use = [&file] {
    char letter = 'x';
    if (write(file.number(), &letter, 1) != 1) return errno;
    return errno_of(ftruncate(file.number(), 0));
  };
  EXPECT_EQ(within({}, use), 0);
}

}  // namespace
}  // namespace disttf::roles
