// Which processes may use the control socket of a launch. This process plays the launch.
#include "roles/launch/shell/control_peer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace disttf::roles {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

// A process that waits until this object goes.
class Waiting {
 public:
  Waiting() : pid_(fork()) {
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      pause();
      _exit(0);
    }
  }
  ~Waiting() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// A process whose parent, a child of this one, has ended.
pid_t start_orphan() {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const pid_t orphan = fork();
    if (orphan == 0) {
      pause();
      _exit(0);
    }
    _exit(write(ends[1], &orphan, sizeof orphan) == sizeof orphan ? 0 : 1);
  }
  EXPECT_EQ(waitpid(parent, nullptr, 0), parent);
  pid_t orphan = -1;
  EXPECT_EQ(read(ends[0], &orphan, sizeof orphan), static_cast<ssize_t>(sizeof orphan));
  close(ends[0]);
  close(ends[1]);
  return orphan;
}

std::optional<std::string> refusal_of(pid_t pid, uid_t uid = geteuid()) {
  return why_refused({.uid = uid, .pid = pid});
}

TEST(ControlPeer, AChildIsRefused) {
  const Waiting child;
  EXPECT_THAT(refusal_of(child.pid()), Optional(HasSubstr("was started by this launch")));
  EXPECT_THAT(refusal_of(child.pid(), 0), Optional(HasSubstr("was started by this launch")))
      << "also where the launch is root's";
}

TEST(ControlPeer, AGrandchildWhoseParentHasEndedIsRefused) {
  keep_orphans();
  const pid_t orphan = start_orphan();
  EXPECT_THAT(refusal_of(orphan), Optional(HasSubstr("was started by this launch")));
  kill(orphan, SIGKILL);
  EXPECT_EQ(waitpid(orphan, nullptr, 0), orphan);
}

TEST(ControlPeer, AProcessThatHasEndedIsRefused) {
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  ASSERT_EQ(waitpid(gone, nullptr, 0), gone);
  EXPECT_THAT(refusal_of(gone), Optional(HasSubstr("does not show the parent of process")));
}

TEST(ControlPeer, AnotherUserIsRefused) {
  EXPECT_THAT(refusal_of(getppid(), geteuid() + 1), Optional(HasSubstr("may not use this")));
}

TEST(ControlPeer, AProcessThatTheLaunchHasNotStartedMayAsk) {
  EXPECT_EQ(refusal_of(getppid()), std::nullopt);
  EXPECT_EQ(refusal_of(0), std::nullopt) << "a process outside of this PID namespace";
}

}  // namespace
}  // namespace disttf::roles
