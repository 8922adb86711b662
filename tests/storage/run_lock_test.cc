// The lock of a --train_dir: which process gets it, which is refused, and which has to wait.
#include "storage/checkpoint/core/run_lock.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "data/file_system.h"
#include "run/outcome.h"
#include "run/process/stop_signal.h"
#include "storage/checkpoint/shell/held_run_lock.h"
#include "storage/store/shell/storage.h"
#include "tests/data/scratch.h"
#include "tests/support/thrown.h"

namespace disttf::roles {
namespace {

using testing::HasSubstr;

net::Cluster cluster_of(const std::string& host, std::uint16_t port = 2222) {
  net::Cluster cluster;
  cluster.ps.push_back({.host = host, .port = port});
  cluster.workers.push_back({.host = host, .port = 2223});
  return cluster;
}

RunLockOwner owner_of(const std::string& run, const std::string& machine = "boot-1") {
  return {.run = run,
          .process = "p" + run,
          .host = "far",
          .machine = machine,
          .directory = "/runs/a",
          .pid = 17,
          .started = 4711,
          .time = "2026-11-29T12:00:00Z"};
}

TEST(RunLock, IsReadBackAsItWasWritten) {
  RunLockOwner owner = owner_of("r");
  owner.renewals = 5;
  const auto read = run_lock_owner_from(to_json(owner));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), to_json(owner));
  EXPECT_EQ(read->pid, 17);
  EXPECT_EQ(read->started, 4711U);
  for (const char* text : {"", "{}", "[1]", "no json", R"({"disttf_lock": 2, "process": "p"})",
                           R"({"disttf_lock": 1})", R"({"disttf_lock": "1", "process": "p"})"}) {
    EXPECT_FALSE(run_lock_owner_from(text)) << text;
  }
}

TEST(RunLock, ARestartedChiefIsOfTheSameRunWhereverItRuns) {
  EXPECT_EQ(run_of_cluster(cluster_of("ps-0.ps"), "boot-1"),
            run_of_cluster(cluster_of("ps-0.ps"), "boot-2"));
  EXPECT_NE(run_of_cluster(cluster_of("ps-0.ps"), "boot-1"),
            run_of_cluster(cluster_of("ps-0.other"), "boot-1"));
  for (const char* host : {"localhost", "127.0.0.1", "::1"}) {
    EXPECT_NE(run_of_cluster(cluster_of(host), "boot-1"),
              run_of_cluster(cluster_of(host), "boot-2"))
        << "two hosts may both have such an address";
  }
  net::Cluster grown = cluster_of("ps-0.ps");
  grown.workers.push_back({.host = "w-1", .port = 2222});
  EXPECT_EQ(run_of_cluster(grown, "boot-1"), run_of_cluster(cluster_of("ps-0.ps"), "boot-1"))
      << "workers may be added";
}

TEST(RunLock, IsTakenFromOneOfTheSameRunAndFromTheDead) {
  const RunLockOwner self = owner_of("mine");
  EXPECT_EQ(judge(owner_of("mine"), self, true), LockVerdict::kTake);
  EXPECT_EQ(judge(owner_of("other"), self, false), LockVerdict::kTake);
}

TEST(RunLock, OfAnOwnerThatLivesIsRefused) {
  EXPECT_EQ(judge(owner_of("other"), owner_of("mine"), true), LockVerdict::kRefuse);
}

TEST(RunLock, IsWatchedWhereItIsNotKnownWhetherItsOwnerLives) {
  const RunLockOwner self = owner_of("mine");
  EXPECT_EQ(judge(owner_of("other"), self, std::nullopt), LockVerdict::kWatch);
  EXPECT_EQ(judge(owner_of("other", "boot-2"), self, false), LockVerdict::kWatch)
      << "pids of another machine mean nothing here";
  EXPECT_EQ(judge(owner_of("other", ""), owner_of("mine", ""), false), LockVerdict::kWatch);
  RunLockOwner of_original = owner_of("other");
  of_original.directory = "/runs/b";
  EXPECT_EQ(judge(of_original, self, true), LockVerdict::kWatch) << "this is a copy";
}

TEST(RunLock, SaysWhoHasItAndWhatToDo) {
  EXPECT_EQ(in_use_sentence("/runs/a", owner_of("r")),
            "--train_dir: \"/runs/a\" is in use by another run, process 17 on host \"far\", which "
            "renewed its lock at 2026-11-29T12:00:00Z; end that run, or give this one another "
            "directory");
}

TEST(RunLock, KnowsProcessesByPidAndStartTime) {
  const RunLockOwner self = own_lock("/runs/a", cluster_of("a"));
  EXPECT_EQ(process_lives(getpid(), self.started), std::optional(true));
  EXPECT_EQ(process_lives(getpid(), self.started + 1), std::optional(false))
      << "the pid was reused";
  constexpr std::int64_t kNoProcess = 0x3fffffff;  // above the kernel's highest pid
  EXPECT_EQ(process_lives(kNoProcess, self.started), std::optional(false));
  EXPECT_EQ(process_lives(getpid(), 0), std::nullopt);
}

// As process 1, many containers run a program that does not reap its children.
TEST(RunLock, AProcessThatHasEndedAndWasNotReapedIsDead) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  ASSERT_GT(child, 0);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  std::ifstream file("/proc/" + std::to_string(child) + "/stat");
  std::string word;
  constexpr int kStartTime = 22;
  for (int field = 0; field < kStartTime; ++field) {
    file >> word;
  }
  EXPECT_EQ(process_lives(child, std::stoull(word)), std::optional(false));
  waitpid(child, nullptr, 0);
}

// On a real directory.
class HeldRunLockTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path path() const { return directory_ / kRunLockName; }
  [[nodiscard]] std::optional<RunLockOwner> owner() const {
    const auto text = RunLockFile(disk_, directory_).read();
    return text ? run_lock_owner_from(*text) : std::nullopt;
  }
  // As another process of this machine writes it.
  void write(const RunLockOwner& other) {
    std::filesystem::create_directories(directory_);
    RunLockFile(disk_, directory_).write(other);
  }
  [[nodiscard]] RunLockOwner other_of_this_machine() const {
    RunLockOwner other = own_lock(directory_, cluster_of("other"));
    other.pid = getppid();
    other.started = 1;  // so it counts as dead
    return other;
  }

  data::test::ScratchDirectory scratch_;
  const std::filesystem::path directory_ = scratch_.path() / "run";
  mutable Storage disk_;
  StopSignal stop_;
  const net::Cluster cluster_ = cluster_of("ps-0.ps");
};

TEST_F(HeldRunLockTest, IsThereWhileItIsHeld) {
  {
    const HeldRunLock held(directory_, cluster_, stop_);
    ASSERT_TRUE(owner());
    EXPECT_EQ(owner()->pid, getpid());
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}), 1);
  }
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(HeldRunLockTest, ASecondRunIsRefused) {
  const HeldRunLock held(directory_, cluster_, stop_);
  const auto failure =
      thrown<Failure>([&] { const HeldRunLock second(directory_, cluster_of("other"), stop_); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->exit_code(), kUsage);
  EXPECT_THAT(failure->what(),
              HasSubstr("is in use by another run, process " + std::to_string(getpid())));
  EXPECT_TRUE(owner()) << "who is refused changes nothing";
  EXPECT_EQ(owner()->run, run_of_cluster(cluster_, ""));  // it is no loopback address
}

TEST_F(HeldRunLockTest, ARestartedChiefTakesItAtOnce) {
  RunLockOwner before = own_lock(directory_, cluster_);
  before.machine = "another";
  write(before);
  const HeldRunLock held(directory_, cluster_, stop_);
  EXPECT_NE(owner()->process, before.process);
}

TEST_F(HeldRunLockTest, OfADeadProcessIsTakenAtOnce) {
  const RunLockOwner before = other_of_this_machine();
  write(before);
  const HeldRunLock held(directory_, cluster_, stop_);
  EXPECT_NE(owner()->process, before.process);
}

// It is not renewed, and was written long ago by the clock of its file system.
TEST_F(HeldRunLockTest, ExpiresWhereItsOwnerCannotBeSeen) {
  RunLockOwner before = other_of_this_machine();
  before.machine = "another";
  write(before);
  std::filesystem::last_write_time(path(),
                                   std::filesystem::file_time_type::clock::now() - 2 * kLockExpiry);
  const HeldRunLock held(directory_, cluster_, stop_);
  EXPECT_NE(owner()->process, before.process);
}

TEST_F(HeldRunLockTest, ItsTimeAddsUpToTheExpiryAndNoMore) {
  write(other_of_this_machine());
  const RunLockFile file(disk_, directory_);
  EXPECT_LT(file.age(), kLockExpiry);
  for (const auto offset : {-2 * kLockExpiry, 2 * kLockExpiry}) {
    std::filesystem::last_write_time(path(),
                                     std::filesystem::file_time_type::clock::now() + offset);
    EXPECT_EQ(file.age(), offset.count() < 0 ? kLockExpiry : std::chrono::seconds(0));
  }
}

TEST_F(HeldRunLockTest, WhoWaitsForItIsEndedByASignal) {
  RunLockOwner before = other_of_this_machine();
  before.machine = "another";
  write(before);
  stop_.stop_with(Failure(kTerminated, "stopped"));
  const auto failure =
      thrown<Failure>([&] { const HeldRunLock held(directory_, cluster_, stop_); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->exit_code(), kTerminated);
  EXPECT_EQ(owner()->process, before.process);
}

TEST_F(HeldRunLockTest, IsTheFirstsWhereTwoTakeItAtOnce) {
  const RunLockFile file(disk_, directory_);
  EXPECT_TRUE(file.create(owner_of("first")));
  EXPECT_FALSE(file.create(owner_of("second")));
  EXPECT_EQ(owner()->run, "first");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}), 1);
}

// Calls `at` before its operation number `when`, counted from 0. Forwards to a real disk.
class InterruptedFileSystem : public data::FileSystem {
 public:
  InterruptedFileSystem(int when, std::function<void()> at) : when_(when), at_(std::move(at)) {}

  [[nodiscard]] bool was_interrupted() const { return operations_ > when_; }

  std::unique_ptr<data::NewFile> create(const Path& target) override {
    return count().create(target);
  }
  std::unique_ptr<data::OpenFile> open(const Path& path) override { return count().open(path); }
  std::uint64_t size_of(const Path& path, std::error_code& error) override {
    return count().size_of(path, error);
  }
  std::filesystem::file_time_type last_write(const Path& path) override {
    return count().last_write(path);
  }
  std::filesystem::file_time_type now(const Path& directory) override {
    return count().now(directory);
  }
  std::vector<std::string> names_in(const Path& directory, std::error_code& error) override {
    return count().names_in(directory, error);
  }
  bool create_directory(const Path& path, std::error_code& error) override {
    return count().create_directory(path, error);
  }
  std::error_code rename(const Path& from, const Path& to) override {
    return count().rename(from, to);
  }
  std::error_code link(const Path& from, const Path& to) override { return count().link(from, to); }
  std::error_code remove(const Path& path) override { return count().remove(path); }
  void sync_directory(const Path& directory) override { count().sync_directory(directory); }

 private:
  Storage& count() {
    if (operations_++ == when_) {
      at_();
    }
    return disk_;
  }

  int when_;
  std::function<void()> at_;
  int operations_ = 0;
  Storage disk_;
};

// The second process runs completely between any two operations of the first one.
TEST_F(HeldRunLockTest, OfADeadOwnerIsTakenByOneOfTwoThatTryAtOnce) {
  const auto nobody_died = [](const RunLockOwner&) { return false; };
  const std::string left = to_json(owner_of("dead"));
  bool was_interrupted = true;
  for (int when = 0; was_interrupted; ++when) {
    write(owner_of("dead"));
    bool second_has_it = false;
    InterruptedFileSystem files(when, [&] {
      second_has_it =
          RunLockFile(disk_, directory_).take_over(left, owner_of("second"), nobody_died);
    });
    const bool first_has_it =
        RunLockFile(files, directory_).take_over(left, owner_of("first"), nobody_died);
    was_interrupted = files.was_interrupted();
    EXPECT_NE(first_has_it, second_has_it) << "interrupted before operation " << when;
    EXPECT_EQ(owner()->run, second_has_it ? "second" : "first");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}), 1);
  }
}

// The process dies before any of its operations; a third process then takes the lock over.
TEST_F(HeldRunLockTest, AProcessThatDiesWhileItTakesTheLockOverHoldsUpNoOther) {
  struct Death {};
  bool died = true;
  for (int when = 0; died; ++when) {
    std::filesystem::remove_all(directory_);
    write(owner_of("dead"));
    const std::string left = to_json(owner_of("dead"));
    InterruptedFileSystem files(when, [] { throw Death(); });
    died = false;
    try {
      EXPECT_TRUE(
          RunLockFile(files, directory_).take_over(left, owner_of("first"), [](const auto&) {
            return false;
          }));
    } catch (const Death&) {
      died = true;
    }
    const RunLockFile file(disk_, directory_);
    EXPECT_TRUE(
        file.take_over(*file.read(), owner_of("second"),
                       [](const RunLockOwner& claimant) { return claimant.run == "first"; }))
        << "died before operation " << when;
    EXPECT_EQ(owner()->run, "second");
  }
}

TEST(LockRenewal, AChiefThatWasReplacedStandsByUntilItsSuccessorIsSilent) {
  const RunLockOwner self = owner_of("run");
  RunLockOwner other = owner_of("run");
  other.process = "another";
  LockRenewal renewal;
  const LockRenewal::Time start{};
  EXPECT_EQ(renewal.verdict(to_json(self), self, start), RenewalVerdict::kRenew);
  EXPECT_EQ(renewal.verdict(std::nullopt, self, start), RenewalVerdict::kRenew);
  EXPECT_EQ(renewal.verdict(to_json(other), self, start), RenewalVerdict::kStandBy);
  ++other.renewals;
  EXPECT_EQ(renewal.verdict(to_json(other), self, start + kLockExpiry), RenewalVerdict::kStandBy);
  EXPECT_EQ(renewal.verdict(to_json(other), self, start + kLockExpiry + kLockRenewal),
            RenewalVerdict::kStandBy);
  EXPECT_EQ(renewal.verdict(to_json(other), self, start + 2 * kLockExpiry), RenewalVerdict::kRenew);
  EXPECT_EQ(renewal.verdict(to_json(owner_of("other run")), self, start), RenewalVerdict::kEndRun);
}

// As if two processes found it free in a store and the other wrote last, or this process was
// suspended until the lock had expired.
TEST_F(HeldRunLockTest, WhoLosesItLaterEnds) {
  const HeldRunLock held(directory_, cluster_, stop_);
  write(owner_of("other"));
  ASSERT_TRUE(stop_.interrupt().wait_until(net::Clock::now() + std::chrono::seconds(60)));
  const auto failure = thrown<Failure>([&] { stop_.throw_if_stopped(); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->exit_code(), kUsage);
  EXPECT_THAT(failure->what(), HasSubstr("is in use by another run, process 17"));
}

TEST_F(HeldRunLockTest, IsNotRemovedWhereASuccessorHasIt) {
  std::optional<HeldRunLock> held;
  held.emplace(directory_, cluster_, stop_);
  RunLockOwner successor = own_lock(directory_, cluster_);
  write(successor);
  held.reset();
  ASSERT_TRUE(owner());
  EXPECT_EQ(owner()->process, successor.process);
}

// From the beginning, or later: the run goes on without its lock, and its saves report the disk.
TEST_F(HeldRunLockTest, ADirectoryThatIsGoneForLongIsNoSuspension) {
  std::ofstream(scratch_.path() / "file") << "no folder";
  RunLockHolder holder(disk_, scratch_.path() / "file" / "run", owner_of("run"),
                       [](const auto&) { return std::nullopt; });
  RunLockHolder::Time now{std::chrono::hours(1)};
  EXPECT_THROW(static_cast<void>(holder.try_to_take(now)), std::system_error);
  for (int each = 0; each < 10; ++each) {
    now += kLockRenewal;
    EXPECT_NO_THROW(holder.check(now, holder.looked()));
    EXPECT_THROW(holder.renew(now, "now"), std::system_error);
  }
  EXPECT_THROW(holder.check(now + kLockExpiry, holder.looked()), Failure) << "it was suspended";
}

TEST_F(HeldRunLockTest, ADirectoryThatCannotBeWrittenCostsAWarning) {
  std::ofstream(scratch_.path() / "file") << "no folder";
  EXPECT_NO_THROW(HeldRunLock(scratch_.path() / "file" / "run", cluster_, stop_));
}

}  // namespace
}  // namespace disttf::roles
