// Where a launch is found: whose socket it is, what the dead leave, what is refused.
#include "roles/launch/shell/control_address.h"

#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include "net/http/http_session.h"
#include "net/tls/secrets.h"
#include "roles/launch/shell/run_secret.h"
#include "run/outcome.h"
#include "tests/data/scratch.h"

namespace disttf::roles {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 ? status.st_mode & 0777U : 0;
}

class ControlAddress : public testing::Test {
 protected:
  ControlOptions in_directory() const {
    return {.directory = directory(), .socket = {}, .port = {}};
  }
  ControlOptions at(const std::string& path) const {
    return {.directory = directory(), .socket = path, .port = {}};
  }
  std::string directory() const { return scratch_.path() / "disttf"; }
  std::string path(const std::string& name) const { return scratch_.path() / name; }
  std::string refusal(const ControlOptions& options) {
    try {
      const ControlSocket socket(context_, options);
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.exit_code(), kCannotListen);
      return failure.what();
    }
    return "";
  }
  // What is left of a process that was killed.
  static void leave_dead(const std::string& path) {
    asio::io_context context;
    const asio::local::stream_protocol::acceptor gone(context, {path});
  }

  data::test::ScratchDirectory scratch_;
  asio::io_context context_;
};

TEST_F(ControlAddress, IsOfItsUserAlone) {
  const ControlSocket socket(context_, in_directory());
  EXPECT_EQ(mode_of(directory()), 0700U);
  EXPECT_EQ(mode_of(socket.path()), 0600U);
  EXPECT_EQ(socket.path(), directory() + "/launch-" + std::to_string(getpid()) + ".sock");
  EXPECT_FALSE(net::try_local(socket.path()));
}

TEST_F(ControlAddress, GoesWithItsOwner) {
  {
    ControlSocket socket(context_, in_directory());
    EXPECT_FALSE(socket.make_token().empty());
    EXPECT_TRUE(fs::exists(socket.token_path()));
  }
  EXPECT_TRUE(fs::is_empty(directory()));
}

TEST_F(ControlAddress, TokensAreOfTheUserAloneAndDiffer) {
  ControlSocket socket(context_, in_directory());
  const std::string token = socket.make_token();
  EXPECT_EQ(mode_of(socket.token_path()), 0600U);
  EXPECT_EQ(token.size(), 32U);
  std::string line;
  std::getline(std::ifstream(socket.token_path()), line);
  EXPECT_EQ(line, token);
  EXPECT_NE(socket.make_token(), token);
}

TEST_F(ControlAddress, TheSecretIsOfTheUserAloneAndGoesWithTheLaunch) {
  std::optional<ControlSocket> socket(std::in_place, context_, in_directory());
  const std::string path = socket->secret_path();
  EXPECT_EQ(path, directory() + "/launch-" + std::to_string(getpid()) + ".secret");
  std::ofstream(path) << "of one that died";
  fs::permissions(path, fs::perms::all);
  socket->write_secret("a random secret");
  EXPECT_EQ(mode_of(path), 0600U);
  std::string line;
  std::getline(std::ifstream(path), line);
  EXPECT_EQ(line, "a random secret");
  socket.reset();
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(ControlAddress, IsFoundAndWhatTheDeadLeftIsRemoved) {
  EXPECT_THAT(find_control_sockets(directory()), IsEmpty());
  const ControlSocket first(context_, in_directory());
  const ControlSocket second(context_, in_directory());
  const std::string dead = directory() + "/launch-1.sock";
  leave_dead(dead);
  std::ofstream(directory() + "/launch-1.token") << "old";
  std::ofstream(directory() + "/launch-1.secret") << "old";
  EXPECT_THAT(find_control_sockets(directory()), ElementsAre(second.path(), first.path()));
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_FALSE(fs::exists(directory() + "/launch-1.token"));
  EXPECT_FALSE(fs::exists(directory() + "/launch-1.secret"));
}

TEST_F(ControlAddress, TakesThePlaceOfADeadOneOnly) {
  leave_dead(path("x.sock"));
  const ControlSocket socket(context_, at(path("x.sock")));
  EXPECT_FALSE(net::try_local(path("x.sock")));
  EXPECT_THAT(refusal(at(path("x.sock"))), HasSubstr("x.sock\" is unavailable: a running launch"));
  EXPECT_FALSE(net::try_local(path("x.sock"))) << "that one is undisturbed";
}

TEST_F(ControlAddress, TouchesNothingElse) {
  std::ofstream(path("file")) << "mine";
  EXPECT_THAT(refusal(at(path("file"))), HasSubstr("it exists and is not a socket"));
  EXPECT_EQ(fs::file_size(path("file")), 4U);
  fs::create_symlink(path("file"), path("link"));
  EXPECT_THAT(refusal(at(path("link"))), HasSubstr("it exists and is not a socket"));
}

TEST_F(ControlAddress, SaysWhyItCannotBeHad) {
  EXPECT_EQ(refusal(at(path("none/x.sock"))),
            "--control: \"" + path("none/x.sock") + "\" is unavailable: No such file or directory");
  EXPECT_THAT(refusal(at(path(std::string(200, 'a')))), HasSubstr("103 are allowed"));
}

TEST_F(ControlAddress, RefusesADirectoryThatOthersCanReach) {
  fs::create_directory(directory());
  fs::permissions(directory(), fs::perms::all);
  EXPECT_THAT(refusal(in_directory()), HasSubstr("belongs to this user alone"));
  const ControlSocket planted(context_, at(directory() + "/launch-1.sock"));
  EXPECT_THAT(find_control_sockets(directory()), IsEmpty()) << "no socket is found there either";
  fs::remove_all(directory());
  fs::create_directory(path("real"));
  fs::permissions(path("real"), fs::perms::owner_all);
  fs::create_directory_symlink(path("real"), directory());
  EXPECT_THAT(refusal(in_directory()), HasSubstr("belongs to this user alone"));
}

// Which processes may use the control socket of a launch. This process plays the launch.

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

// The secret that a launch generates for its run.

TEST(RunSecret, IsAnotherEachTimeAndOneThatTasksTake) {
  const std::string one = make_run_secret();
  EXPECT_EQ(one.size(), 44U);
  EXPECT_NE(make_run_secret(), one);
  EXPECT_NO_THROW(net::Secrets(one, "test"));
}

TEST(RunSecret, IsToldInTheEnvironmentAlone) {
  EXPECT_THAT(secret_variables(SecretOfRun::kMade, "abc"), ElementsAre("DISTTF_SECRET=abc"));
  EXPECT_THAT(secret_variables(SecretOfRun::kNone, ""), ElementsAre("DISTTF_SECRET="))
      << "one that the launcher has is not handed on";
  EXPECT_THAT(secret_variables(SecretOfRun::kGiven, ""), IsEmpty());
}

}  // namespace
}  // namespace disttf::roles
