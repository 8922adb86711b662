// What the kernel denies a process that has confined itself. Each case runs in a process of its
// own.
#include "run/process/confinement.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

#include "tests/data/scratch.h"

namespace disttf::roles {
namespace {

// Returns what `act` returns in a confined process; 255 if this kernel cannot confine it.
int confined(ProcessKind kind, const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(confine(kind).filters_calls ? act() : 255);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  return WEXITSTATUS(status);
}

// Returns 0 if the call has succeeded.
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
    ASSERT_EQ(confined(ProcessKind::kPs, [] { return 0; }), 0)
        << "this kernel has no seccomp filters";
  }
};

TEST_F(ConfinementTest, RunsNoProgramUnlessItStartsTasks) {
  EXPECT_EQ(confined(ProcessKind::kPs, run_true), EPERM);
  EXPECT_EQ(confined(ProcessKind::kPrograms, run_true), 0);
}

TEST_F(ConfinementTest, ATaskThatIsStartedCanConfineItselfFurther) {
  EXPECT_EQ(confined(ProcessKind::kPrograms,
                     [] { return confine(ProcessKind::kPs).filters_calls ? run_true() : 255; }),
            EPERM);
}

TEST_F(ConfinementTest, AProgramThatItStartsHasNoMoreRights) {
  EXPECT_EQ(confined(ProcessKind::kPrograms, [] { return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); }),
            1);
}

// Sanitizers make system calls that no allow-list has, so these builds only have the deny-list.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SKIP_WITHOUT_LISTS() GTEST_SKIP() << "builds with sanitizers have no lists of calls"
#else
#define SKIP_WITHOUT_LISTS() static_cast<void>(0)
#endif

constexpr std::array kTaskKinds = {ProcessKind::kPs, ProcessKind::kTrainer, ProcessKind::kEvaluator,
                                   ProcessKind::kServe};

TEST_F(ConfinementTest, OpensSocketsOfTheNetworkAndOfNoOtherKind) {
  EXPECT_EQ(confined(ProcessKind::kPs, [] { return socket_of(AF_INET); }), 0);
  EXPECT_EQ(confined(ProcessKind::kPs, [] { return socket_of(AF_UNIX, SOCK_SEQPACKET); }), 0);
  EXPECT_EQ(confined(ProcessKind::kPs, [] { return socket_of(AF_NETLINK, SOCK_RAW); }), 0);
  EXPECT_EQ(confined(ProcessKind::kPs, [] { return socket_of(AF_PACKET, SOCK_RAW); }),
            EAFNOSUPPORT);
  EXPECT_EQ(confined(ProcessKind::kPs, [] { return socket_of(AF_ALG, SOCK_SEQPACKET); }),
            EAFNOSUPPORT);
}

TEST_F(ConfinementTest, LeavesOtherProcessesAlone) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the leak detector of this build traces its process";
#endif
  EXPECT_EQ(confined(ProcessKind::kPs,
                     [] { return error_of(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); }),
            EPERM);
}

// Landlock restricts only TCP.
TEST_F(ConfinementTest, SpeaksNoOtherProtocolThanTcpAndUdp) {
  SKIP_WITHOUT_LISTS();
  constexpr int kMptcp = 262;
  for (const ProcessKind kind : kTaskKinds) {
    for (const int family : {AF_INET, AF_INET6}) {
      const auto socket_by = [family](int type, int protocol) {
        return [=] { return error_of(socket(family, type, protocol)); };
      };
      EXPECT_EQ(confined(kind, socket_by(SOCK_STREAM, kMptcp)), EPROTONOSUPPORT);
      EXPECT_EQ(confined(kind, socket_by(SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_SCTP)),
                EPROTONOSUPPORT);
      EXPECT_EQ(confined(kind, socket_by(SOCK_SEQPACKET, IPPROTO_SCTP)), EPROTONOSUPPORT);
      EXPECT_EQ(confined(kind, socket_by(SOCK_DGRAM, IPPROTO_ICMP)), EPROTONOSUPPORT);
      EXPECT_EQ(confined(kind, socket_by(SOCK_RAW, IPPROTO_RAW)), EPROTONOSUPPORT);
    }
    for (const int family : {AF_PACKET, AF_VSOCK, AF_ALG}) {
      EXPECT_EQ(confined(kind, [family] { return socket_of(family); }), EAFNOSUPPORT) << family;
    }
    EXPECT_EQ(confined(kind, [] { return error_of(socket(AF_NETLINK, SOCK_RAW, 9)); }),
              EPROTONOSUPPORT);
  }
}

TEST_F(ConfinementTest, ATaskSendsNothingThatConnectsByTheWay) {
  SKIP_WITHOUT_LISTS();
  for (const ProcessKind kind : kTaskKinds) {
    const auto send_fast = [] {
      sockaddr_in nowhere{};
      nowhere.sin_family = AF_INET;
      msghdr message{};
      message.msg_name = &nowhere;
      message.msg_namelen = sizeof nowhere;
      mmsghdr messages{};
      messages.msg_hdr = message;
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      const std::array errors = {
          error_of(sendto(fd, "", 1, MSG_FASTOPEN, static_cast<sockaddr*>(message.msg_name),
                          sizeof nowhere)),
          error_of(sendmsg(fd, &message, MSG_FASTOPEN)),
          error_of(sendmmsg(fd, &messages, 1, MSG_FASTOPEN))};
      return errors == std::array{EPERM, EPERM, EPERM} ? 0 : 1;
    };
    EXPECT_EQ(confined(kind, send_fast), 0);
  }
}

// This machine's services have sockets with paths, of this type or datagram sockets.
TEST_F(ConfinementTest, ATaskOpensNoStreamWithinTheMachine) {
  SKIP_WITHOUT_LISTS();
  for (const ProcessKind kind : kTaskKinds) {
    EXPECT_EQ(confined(kind, [] { return socket_of(AF_UNIX); }), EPERM);
    EXPECT_EQ(confined(kind, [] { return socket_of(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC); }), EPERM);
    EXPECT_EQ(confined(kind,
                       [] {
                         std::array<int, 2> ends{};
                         return error_of(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()));
                       }),
              EPERM);
  }
  EXPECT_EQ(confined(ProcessKind::kCommand, [] { return socket_of(AF_UNIX); }), 0)
      << "`disttf status` asks a launch by one";
}

// Landlock only blocks signals to them.
TEST_F(ConfinementTest, ATaskChangesNoOtherProcess) {
  SKIP_WITHOUT_LISTS();
  const pid_t other = getpid();
  const std::array<std::function<long()>, 9> attempts = {
      [other] { return syscall(SYS_prlimit64, other, RLIMIT_CPU, nullptr, nullptr); },
      [other] { return setpriority(PRIO_PROCESS, static_cast<id_t>(other), 19); },
      [] { return setpriority(PRIO_USER, 0, 19); },
      [other] {
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        CPU_SET(0, &cpus);
        return sched_setaffinity(other, sizeof cpus, &cpus);
      },
      [other] {
        const sched_param param{};
        return sched_setscheduler(other, SCHED_BATCH, &param);
      },
      [other] { return syscall(SYS_ioprio_set, 1, other, 0); },
      [other] { return kill(other, SIGCONT); },
      [other] { return syscall(SYS_pidfd_open, other, 0); },
      [other] { return syscall(SYS_migrate_pages, other, 0, nullptr, nullptr); }};
  for (const ProcessKind kind : kTaskKinds) {
    for (std::size_t each = 0; each < attempts.size(); ++each) {
      EXPECT_EQ(confined(kind, [&] { return error_of(attempts.at(each)()); }), EPERM) << each;
    }
  }
}

TEST_F(ConfinementTest, ATaskStartsNoProcess) {
  SKIP_WITHOUT_LISTS();
  for (const ProcessKind kind : kTaskKinds) {
    const auto start = [] {
      const pid_t child = fork();
      if (child == 0) _exit(0);
      return error_of(child);
    };
    EXPECT_EQ(confined(kind, start), EPERM);
  }
}

// Landlock decides which files may be opened, but not whether their metadata may be changed by
// path.
TEST_F(ConfinementTest, ATaskChangesNoModesOwnersAndDates) {
  SKIP_WITHOUT_LISTS();
  const data::test::ScratchDirectory scratch;
  const std::string file = scratch.path() / "file";
  const int fd = open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  const char* const path = file.c_str();
  const std::array<std::function<long()>, 9> attempts = {
      [path] { return chmod(path, 0666); },
      [fd] { return fchmod(fd, 0666); },
      [fd] { return fchmod(fd, 04755); },
      [path] { return chown(path, getuid(), getgid()); },
      [path] { return syscall(SYS_setxattr, path, "user.x", "y", 1, 0); },
      [path] { return utimensat(AT_FDCWD, path, nullptr, 0); },
      [path] { return truncate(path, 0); },
      [path] { return symlink("/", path); },
      [path] { return mknod(path, S_IFIFO | 0600, 0); }};
  for (const ProcessKind kind : kTaskKinds) {
    for (std::size_t each = 0; each < attempts.size(); ++each) {
      EXPECT_EQ(confined(kind, [&] { return error_of(attempts.at(each)()); }), EPERM) << each;
    }
  }
  EXPECT_EQ(confined(ProcessKind::kTrainer, [fd] { return error_of(futimens(fd, nullptr)); }), 0);
  EXPECT_EQ(confined(ProcessKind::kTrainer, [fd] { return error_of(fchmod(fd, 0644)); }), 0);
  close(fd);
}

TEST_F(ConfinementTest, ACallThatIsNewerThanTheListIsNotThere) {
  SKIP_WITHOUT_LISTS();
  constexpr long kNewer = 462;
  for (const ProcessKind kind : kTaskKinds) {
    EXPECT_EQ(confined(kind, [] { return error_of(syscall(kNewer, 0, 0, 0)); }), ENOSYS);
    EXPECT_EQ(confined(kind, [] { return error_of(syscall(SYS_io_uring_setup, 1, nullptr)); }),
              EPERM);
  }
}

TEST_F(ConfinementTest, LeavesItsNamespaces) {
  EXPECT_EQ(confined(ProcessKind::kPs, [] { return error_of(unshare(CLONE_NEWUSER)); }), EPERM);
  EXPECT_EQ(
      confined(ProcessKind::kPs,
               [] { return error_of(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)); }),
      EPERM);
}

TEST_F(ConfinementTest, TypesNothingIntoATerminal) {
  const auto type = [] {
    char letter = 'x';
    return error_of(ioctl(STDIN_FILENO, TIOCSTI, &letter));
  };
  EXPECT_EQ(confined(ProcessKind::kPs, type), EPERM);
}

TEST_F(ConfinementTest, StartsThreadsThatAreConfinedToo) {
  const auto in_a_thread = [] {
    int error = -1;
    std::thread([&error] { error = run_true(); }).join();
    return error;
  };
  EXPECT_EQ(confined(ProcessKind::kPs, in_a_thread), EPERM);
}

// Returns the error of opening that file of this process from another process of the same user. 3:
// unknown.
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
    constexpr uid_t kNobody = 65'534;  // root may open everything
    if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) {
      _exit(3);
    }
    prctl(PR_SET_DUMPABLE, 1);  // the change of user has cleared it
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
