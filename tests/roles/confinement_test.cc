// What the kernel refuses to a process that has confined itself. Each case is a process of its own.
#include "roles/process/confinement.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>

namespace disttf::roles {
namespace {

// What `act` returns in a process that is confined; 255: that could not be, by this kernel.
int confined(bool starts_programs, const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(confine(starts_programs).filters_calls ? act() : 255);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  return WEXITSTATUS(status);
}

// 0: it has worked.
int error_of(long result) { return result < 0 ? errno : 0; }

int run_true() {
  std::array<char*, 2> words = {const_cast<char*>("true"), nullptr};
  execv("/bin/true", words.data());
  return errno;
}

int socket_of(int family, int type = SOCK_STREAM) { return error_of(socket(family, type, 0)); }

class ConfinementTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(confined(false, [] { return 0; }), 0) << "this kernel has no seccomp filters";
  }
};

TEST_F(ConfinementTest, RunsNoProgramUnlessItStartsTasks) {
  EXPECT_EQ(confined(false, run_true), EPERM);
  EXPECT_EQ(confined(true, run_true), 0);
}

TEST_F(ConfinementTest, ATaskThatIsStartedCanConfineItselfFurther) {
  EXPECT_EQ(confined(true, [] { return confine(false).filters_calls ? run_true() : 255; }), EPERM);
}

TEST_F(ConfinementTest, AProgramThatItStartsHasNoMoreRights) {
  EXPECT_EQ(confined(true, [] { return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); }), 1);
}

TEST_F(ConfinementTest, OpensSocketsOfTheNetworkAndOfNoOtherKind) {
  EXPECT_EQ(confined(false, [] { return socket_of(AF_INET); }), 0);
  EXPECT_EQ(confined(false, [] { return socket_of(AF_UNIX); }), 0);
  EXPECT_EQ(confined(false, [] { return socket_of(AF_NETLINK, SOCK_RAW); }), 0);
  EXPECT_EQ(confined(false, [] { return socket_of(AF_PACKET, SOCK_RAW); }), EAFNOSUPPORT);
  EXPECT_EQ(confined(false, [] { return socket_of(AF_ALG, SOCK_SEQPACKET); }), EAFNOSUPPORT);
}

TEST_F(ConfinementTest, LeavesOtherProcessesAlone) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the leak detector of this build traces its process";
#endif
  EXPECT_EQ(confined(false, [] { return error_of(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); }),
            EPERM);
}

TEST_F(ConfinementTest, LeavesItsNamespaces) {
  EXPECT_EQ(confined(false, [] { return error_of(unshare(CLONE_NEWUSER)); }), EPERM);
  EXPECT_EQ(
      confined(false,
               [] { return error_of(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)); }),
      EPERM);
}

TEST_F(ConfinementTest, TypesNothingIntoATerminal) {
  const auto type = [] {
    char letter = 'x';
    return error_of(ioctl(STDIN_FILENO, TIOCSTI, &letter));
  };
  EXPECT_EQ(confined(false, type), EPERM);
}

TEST_F(ConfinementTest, StartsThreadsThatAreConfinedToo) {
  const auto in_a_thread = [] {
    int error = -1;
    std::thread([&error] { error = run_true(); }).join();
    return error;
  };
  EXPECT_EQ(confined(false, in_a_thread), EPERM);
}

// Whether another process of the same user may open that file of the one that asks. 3: it is not
// known.
int error_of_opening_from_beside(const char* name) {
  const std::string path = "/proc/" + std::to_string(getpid()) + "/" + name;
  const pid_t child = fork();
  if (child == 0) {
    _exit(error_of(open(path.c_str(), O_RDONLY | O_CLOEXEC)));
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

int open_beside(const char* name, bool kept_private) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65'534;  // root may look everywhere
    if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) {
      _exit(3);
    }
    prctl(PR_SET_DUMPABLE, 1);  // which another user has ended
    if (kept_private && !keep_memory_private()) {
      _exit(3);
    }
    _exit(error_of_opening_from_beside(name));
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WEXITSTATUS(status);
}

TEST_F(ConfinementTest, KeepsItsMemoryFromProcessesOfItsUser) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the leak detector looks into the process";
#endif
  for (const char* name : {"environ", "maps"}) {
    EXPECT_EQ(open_beside(name, false), 0) << name << ", which else is open to them";
    EXPECT_EQ(open_beside(name, true), EACCES) << name;
  }
}

}  // namespace
}  // namespace disttf::roles
