// start_child() runs this very file again: as a probe (see probe_main.cc), which reports what it
// was started with.
#include "roles/launch/shell/child_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "net/tcp/sockets.h"
#include "roles/launch/shell/child_output.h"
#include "roles/launch/shell/reserved_port.h"
#include "tests/roles/probe.h"
#include "tests/support/thrown.h"

namespace disttf::roles {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string read_to_end(const data::FileDescriptor& fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t length = 0; (length = read(fd.number(), buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(length));
  }
  return text;
}

class ChildProcessTest : public testing::Test {
 protected:
  // Runs the probe to its end.
  void run(ChildOptions options) {
    options.arguments.insert(options.arguments.begin(), kProbeArgument);
    const ChildProcess child = start_child(options);
    output_ = read_to_end(child.standard_output);
    error_ = read_to_end(child.standard_error);
    if (child.progress.number() >= 0) {
      progress_ = read_to_end(child.progress);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child.pid, &status, 0), child.pid);
    ASSERT_TRUE(WIFEXITED(status));
    exit_code_ = WEXITSTATUS(status);
    pid_ = child.pid;
  }
  std::string output_;
  std::string error_;
  std::string progress_;
  int exit_code_ = -1;
  pid_t pid_ = -1;
};

TEST_F(ChildProcessTest, IsThisFileWithTheArguments) {
  run({.arguments = {"worker", "--train_steps=3"}});
  EXPECT_THAT(output_, HasSubstr("argument worker\nargument --train_steps=3\n"));
  EXPECT_EQ(exit_code_, kProbeExitCode);
}

TEST_F(ChildProcessTest, PrintsIntoTheTwoPipes) {
  run({});
  EXPECT_THAT(output_, HasSubstr("on standard output\n"));
  EXPECT_THAT(output_, Not(HasSubstr("on standard error\n")));
  EXPECT_THAT(error_, HasSubstr("on standard error\n"));
}

TEST_F(ChildProcessTest, ReadsNothingFromStandardInput) {
  run({});
  EXPECT_THAT(output_, HasSubstr("standard input: empty\n"));
}

TEST_F(ChildProcessTest, LeadsAProcessGroupOfItsOwn) {
  run({});
  EXPECT_THAT(output_, HasSubstr("process group " + std::to_string(pid_) + "\n"));
}

TEST_F(ChildProcessTest, DoesNotSeeTheLaunchersTfConfig) {
  setenv("TF_CONFIG", "{}", 1);
  setenv("TF_CONFIG_OF_ANOTHER", "kept", 1);
  run({});
  unsetenv("TF_CONFIG");
  unsetenv("TF_CONFIG_OF_ANOTHER");
  EXPECT_THAT(output_, Not(HasSubstr("environment TF_CONFIG=")));
  EXPECT_THAT(output_, HasSubstr("environment TF_CONFIG_OF_ANOTHER=kept\n"));
}

TEST_F(ChildProcessTest, SeesItsVariablesInPlaceOfTheLaunchers) {
  setenv("OF_BOTH", "launcher's", 1);
  setenv("TF_CONFIG", "launcher's", 1);
  run({.arguments = {}, .variables = {"OF_BOTH=child's", "TF_CONFIG=child's"}});
  unsetenv("OF_BOTH");
  unsetenv("TF_CONFIG");
  EXPECT_THAT(output_, HasSubstr("environment OF_BOTH=child's\n"));
  EXPECT_THAT(output_, HasSubstr("environment TF_CONFIG=child's\n"));
  EXPECT_THAT(output_, Not(HasSubstr("launcher's")));
}

TEST_F(ChildProcessTest, HasNoSignalBlocked) {
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &term, &before);
  run({});
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_THAT(output_, HasSubstr("SIGTERM blocked: no\n"));
}

TEST_F(ChildProcessTest, IsToldItsListeningSocketAndHasIt) {
  const data::FileDescriptor listening(open("/dev/null", O_RDONLY | O_CLOEXEC));
  run({.arguments = {}, .listen_fd = listening.number()});
  const std::string number = std::to_string(listening.number());
  EXPECT_THAT(output_, HasSubstr("argument --listen_fd=" + number + "\n"));
  EXPECT_THAT(output_, HasSubstr("descriptor " + number + " open\n"));
}

TEST_F(ChildProcessTest, HasNoOtherDescriptorOfTheLauncher) {
  const data::FileDescriptor mine(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const data::FileDescriptor listening(open("/dev/null", O_RDONLY | O_CLOEXEC));
  run({.arguments = {}, .listen_fd = listening.number()});
  EXPECT_THAT(output_, Not(HasSubstr("descriptor " + std::to_string(mine.number()) + " open\n")));
}

// As libraries open them: Asio's accepted connections are such.
TEST_F(ChildProcessTest, HasNoneThatWasOpenedToBeHandedOn) {
  const data::FileDescriptor mine(open("/dev/null", O_RDONLY));  // NOLINT(android-cloexec-open)
  run({});
  EXPECT_THAT(output_, Not(HasSubstr("descriptor " + std::to_string(mine.number()) + " open\n")));
}

TEST_F(ChildProcessTest, HasFurtherDescriptorsThatAreHandedOn) {
  const data::FileDescriptor mine(open("/dev/null", O_RDONLY | O_CLOEXEC));
  run({.arguments = {}, .inherited = {-1, mine.number()}});
  EXPECT_THAT(output_, HasSubstr("descriptor " + std::to_string(mine.number()) + " open\n"));
}

// All words after "--" belong to the command.
TEST_F(ChildProcessTest, HasItsCommandAfterAllOtherWords) {
  const data::FileDescriptor listening(open("/dev/null", O_RDONLY | O_CLOEXEC));
  run({.arguments = {"worker"}, .command = {"sh", "-c"}, .listen_fd = listening.number()});
  EXPECT_THAT(output_, HasSubstr("argument worker\nargument --listen_fd=" +
                                 std::to_string(listening.number()) +
                                 "\nargument --\nargument sh\nargument -c\n"));
}

TEST_F(ChildProcessTest, DoesNotGetAVariableThatIsRemoved) {
  setenv("OF_THE_LAUNCHER", "x", 1);
  setenv("OF_THE_LAUNCHER_TOO", "kept", 1);
  run({.arguments = {}, .removed = {"OF_THE_LAUNCHER"}});
  unsetenv("OF_THE_LAUNCHER");
  unsetenv("OF_THE_LAUNCHER_TOO");
  EXPECT_THAT(output_, Not(HasSubstr("environment OF_THE_LAUNCHER=")));
  EXPECT_THAT(output_, HasSubstr("environment OF_THE_LAUNCHER_TOO=kept\n"));
}

TEST_F(ChildProcessTest, StaysInTheLaunchersGroupIfItLeadsNone) {
  run({.arguments = {}, .leads_group = false});
  EXPECT_THAT(output_, HasSubstr("process group " + std::to_string(getpgrp()) + "\n"));
}

TEST_F(ChildProcessTest, WritesProgressIntoAPipeWhenAskedTo) {
  run({.arguments = {}, .progress = true});
  EXPECT_EQ(progress_, kProbeProgress);
}

TEST_F(ChildProcessTest, IsGivenNoDescriptorUnasked) {
  run({});
  EXPECT_THAT(output_, Not(HasSubstr("--progress_fd")));
  EXPECT_THAT(output_, Not(HasSubstr("--listen_fd")));
}

TEST(ChildProcess, MayBeAnotherProgram) {
  const ChildProcess child =
      start_child({.program = "/bin/sh", .name = "my-shell", .arguments = {"-c", "echo $0 $1"}});
  EXPECT_EQ(read_to_end(child.standard_output), "my-shell\n");
  int status = 0;
  ASSERT_EQ(waitpid(child.pid, &status, 0), child.pid);
  EXPECT_EQ(status, 0);
}

// SIGPIPE kills a program that has not ignored it itself, so the program ends when its reader does.
TEST(ChildProcess, DoesNotIgnoreABrokenPipeBecauseTheLauncherDoes) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  const ChildProcess child =
      start_child({.program = "/bin/sh", .arguments = {"-c", "kill -PIPE $$"}});
  int status = 0;
  ASSERT_EQ(waitpid(child.pid, &status, 0), child.pid);
  std::signal(SIGPIPE, before);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGPIPE);
}

// The child's output is this process's: here a pipe in place of it.
TEST(ChildProcess, PrintsWhereTheLauncherPrintsWithoutPipes) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const data::FileDescriptor read_end(ends[0]);
  data::FileDescriptor write_end(ends[1]);
  const data::FileDescriptor before(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  dup2(write_end.number(), STDOUT_FILENO);
  const ChildProcess child =
      start_child({.program = "/bin/sh", .arguments = {"-c", "echo text"}, .has_pipes = false});
  dup2(before.number(), STDOUT_FILENO);
  write_end = data::FileDescriptor();
  int status = 0;
  ASSERT_EQ(waitpid(child.pid, &status, 0), child.pid);
  EXPECT_FALSE(child.standard_output.is_open());
  EXPECT_EQ(read_to_end(read_end), "text\n");
}

// A supervisor stands between: its child leads a group, and that has a child of its own.
TEST(ChildProcess, IsKilledWithWhatItHasStarted) {
  ChildProcess child = start_child(
      {.program = "/bin/bash",
       .arguments = {"-c", "set -m; sh -c 'sleep 1000 & echo $!; wait' & echo $!; wait"}});
  // Two lines: both have started.
  std::string lines;
  std::array<char, 64> buffer{};
  while (std::ranges::count(lines, '\n') < 2) {
    const ssize_t length = read(child.standard_output.number(), buffer.data(), buffer.size());
    ASSERT_GT(length, 0);
    lines.append(buffer.data(), static_cast<std::size_t>(length));
  }
  signal_with_children(child.pid, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child.pid, &status, 0), child.pid);
  // The end of the pipe says that all of them are gone.
  EXPECT_EQ(read_to_end(child.standard_output), "");
}

TEST(ChildProcess, IsFrozenWithWhatItHasStarted) {
  ChildProcess child = start_child(
      {.program = "/bin/bash", .arguments = {"-c", "set -m; sleep 1000 & echo $!; wait"}});
  std::array<char, 64> buffer{};
  ASSERT_GT(read(child.standard_output.number(), buffer.data(), buffer.size() - 1), 0);
  const std::string stat = "/proc/" + std::to_string(std::atoi(buffer.data())) + "/stat";
  // "1234 (sleep) T ...": waits for the state.
  const auto reaches = [&stat](const std::string& states) {
    while (true) {
      std::string number;
      std::string name;
      std::string state;
      std::ifstream(stat) >> number >> name >> state;
      if (state.empty()) return false;  // it is gone
      if (states.find(state[0]) != std::string::npos) return true;
    }
  };
  signal_with_children(child.pid, SIGSTOP);
  EXPECT_TRUE(reaches("T"));
  signal_with_children(child.pid, SIGCONT);
  EXPECT_TRUE(reaches("SR"));
  signal_with_children(child.pid, SIGKILL);
  int status = 0;
  EXPECT_EQ(waitpid(child.pid, &status, 0), child.pid);
}

TEST(FindProgram, LooksWhereAShellDoes) {
  EXPECT_EQ(find_program("/bin/sh", ""), "/bin/sh");
  EXPECT_EQ(find_program("sh", "/nowhere:/bin:/usr/bin"), "/bin/sh");
  EXPECT_EQ(find_program("sh", "/nowhere"), std::nullopt);
  EXPECT_EQ(find_program("passwd", "/etc"), std::nullopt) << "not executable";
  EXPECT_EQ(find_program("bin", "/usr"), std::nullopt) << "a folder";
  EXPECT_EQ(find_program("", "/bin"), std::nullopt);
}

// Before it runs a file of its own it is a copy of the launcher, handlers included.
TEST(ChildProcess, IsEndedByASignalFromItsFirstMomentOn) {
  const auto before = std::signal(SIGTERM, [](int) {});
  for (int each = 0; each < 20; ++each) {
    const ChildProcess child = start_child({.arguments = {kProbeArgument, kProbeWaits}});
    kill(child.pid, SIGTERM);
    int status = 0;
    ASSERT_EQ(waitpid(child.pid, &status, 0), child.pid);
    ASSERT_TRUE(WIFSIGNALED(status)) << "ended with " << WEXITSTATUS(status);
    ASSERT_EQ(WTERMSIG(status), SIGTERM);
  }
  std::signal(SIGTERM, before);
}

TEST(ChildProcess, DiesWithTheLauncher) {
  // A launcher of our own, which dies at once; its child waits and holds the write end
  // of a pipe. End of file says that the child is gone.
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);  // without CLOEXEC: the child inherits it
  const data::FileDescriptor read_end(ends[0]);
  data::FileDescriptor write_end(ends[1]);
  const pid_t launcher = fork();
  if (launcher == 0) {
    const ChildProcess child = start_child({.arguments = {kProbeArgument, kProbeWaits}});
    std::array<char, 1> byte{};
    const bool started = read(child.standard_output.number(), byte.data(), byte.size()) == 1;
    kill(getpid(), started ? SIGKILL : SIGABRT);
  }
  write_end = data::FileDescriptor();
  int status = 0;
  ASSERT_EQ(waitpid(launcher, &status, 0), launcher);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(WTERMSIG(status), SIGKILL);
  constexpr int kPatienceMs = 20'000;  // the child would wait longer than that
  pollfd hangup{.fd = read_end.number(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&hangup, 1, kPatienceMs), 1);
  EXPECT_EQ(hangup.revents, POLLHUP);
}

using testing::ElementsAre;

// The lines of a writer that writes `text` and ends.
std::vector<std::string> lines_of(const std::string& text) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  std::thread writer([&, write_end = data::FileDescriptor(ends[1])] {
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t count = write(write_end.number(), text.data() + at, text.size() - at);
      ASSERT_GT(count, 0);
      at += static_cast<std::size_t>(count);
    }
  });
  std::vector<std::string> lines;
  asio::io_context context;
  asio::co_spawn(context,
                 read_lines(data::FileDescriptor(ends[0]),
                            [&](std::string_view line) { lines.emplace_back(line); }),
                 asio::detached);
  context.run();
  writer.join();
  return lines;
}

TEST(ReadLines, HandsOverEachLineWithoutItsEnd) {
  EXPECT_THAT(lines_of("one\n\nthree\n"), ElementsAre("one", "", "three"));
}

TEST(ReadLines, HandsOverWhatAWriterThatDiedHadWritten) {
  EXPECT_THAT(lines_of("one\ntw"), ElementsAre("one", "tw"));
  EXPECT_THAT(lines_of(""), ElementsAre());
}

TEST(ReadLines, CutsALineThatIsTooLong) {
  constexpr std::size_t kMost = 64 * 1024;
  EXPECT_THAT(lines_of(std::string(kMost + 1, 'x') + "\nnext\n"),
              ElementsAre(std::string(kMost, 'x'), "x", "next"));
}

using asio::ip::tcp;

class ReservedPortTest : public testing::Test {
 protected:
  std::error_code connect() {
    tcp::socket socket(context_);
    std::error_code error;
    socket.connect({asio::ip::address_v4::loopback(), port_.address().port}, error);
    return error;
  }
  asio::io_context context_;
  ReservedPort port_{context_};
};

TEST_F(ReservedPortTest, RefusesConnectionsWithoutAListener) {
  EXPECT_EQ(connect(), asio::error::connection_refused);
}

TEST_F(ReservedPortTest, IsListenedOnAgainAndAgain) {
  for (int each = 0; each < 3; ++each) {
    tcp::acceptor acceptor = port_.listen();
    EXPECT_EQ(acceptor.local_endpoint().port(), port_.address().port);
    EXPECT_FALSE(connect());
    acceptor.close();
    EXPECT_EQ(connect(), asio::error::connection_refused);
  }
}

// What a dead process leaves behind: connections that still close, on its side of the port.
TEST_F(ReservedPortTest, IsListenedOnBesideOldConnections) {
  tcp::acceptor acceptor = port_.listen();
  tcp::socket client(context_);
  client.connect({asio::ip::address_v4::loopback(), port_.address().port});
  const tcp::socket server = acceptor.accept();
  acceptor.close();
  EXPECT_NO_THROW(acceptor = port_.listen());
}

TEST_F(ReservedPortTest, IsNotGivenToAnotherProcess) {
  tcp::acceptor other(context_, tcp::v4());
  std::error_code error;
  other.bind({asio::ip::address_v4::loopback(), port_.address().port}, error);
  EXPECT_EQ(error, asio::error::address_in_use);
}

TEST_F(ReservedPortTest, IsFreeAfterwards) {
  std::uint16_t number = 0;
  {
    const ReservedPort port(context_);
    number = port.address().port;
  }
  EXPECT_NO_THROW(net::listen_on(context_, number, net::ListenScope::kLoopback));
}

TEST_F(ReservedPortTest, SaysWhyItCannotBeListenedOn) {
  const tcp::acceptor first = port_.listen();
  EXPECT_EQ(sentence_of<std::system_error>([&] { const tcp::acceptor second = port_.listen(); }),
            "cannot listen on 127.0.0.1 port " + std::to_string(port_.address().port) +
                ": Address already in use");
}

TEST_F(ReservedPortTest, IsHeldByNoChild) {
  for (int fd = 0; fd < 64; ++fd) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
        address.sin_family == AF_INET && ntohs(address.sin_port) == port_.address().port) {
      EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
      return;
    }
  }
  FAIL() << "no socket has the port";
}

}  // namespace
}  // namespace disttf::roles
