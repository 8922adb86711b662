// Several processes that fetch into one directory.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "storage/download/download.h"
#include "tests/data/scratch.h"
#include "tests/storage/download_fixture.h"

namespace disttf::roles {
namespace {

using namespace std::chrono_literals;
using test_support::MirrorServer;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class DownloadRaceTest : public DownloadTest {};

TEST_F(DownloadRaceTest, OnlyOneOfSeveralProcessesDownloads) {
  MirrorServer server(test_support::serve(served), MirrorServer::Start::kLater);
  use(server);
  EXPECT_EQ(data::test::in_children(
                6, [&] { return failure().empty(); }, [&] { server.start(); }),
            6);
  expect_all_there();
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(DownloadRaceTest, TheNextTakesOverFromOneThatIsKilled) {
  MirrorServer server(test_support::first_then(1, test_support::stall_after(served, 100'000),
                                               test_support::serve(served)),
                      MirrorServer::Start::kLater);
  use(server);
  options.stall_timeout = 1h;
  const pid_t victim = fork();
  if (victim == 0) _exit(failure().empty() ? 0 : 1);
  server.start();
  ASSERT_TRUE(server.wait_for_request());  // it holds the lock, and stalls
  options.on_message = [&](std::string_view text) {
    messages.emplace_back(text);
    kill(victim, SIGKILL);
  };
  fetch();
  waitpid(victim, nullptr, 0);
  expect_all_there();
  EXPECT_THAT(messages, Contains(HasSubstr("another process is downloading into")));
}

TEST_F(DownloadRaceTest, ThoseWhoWaitShareTheFailure) {
  const MirrorServer server(test_support::answer_not_found());
  use(server);
  std::string inherited;
  net::Interrupt waiting;  // raised once the other one waits
  std::thread waiter;
  {
    DownloadLock lock(options.directory, {}, {}, interrupt);
    DownloadOptions other = options;
    other.on_message = [&](std::string_view) { waiting.interrupt(); };
    waiter = std::thread([this, other, &inherited] {
      try {
        fetch_files(files, other, interrupt);
      } catch (const DownloadError& error) {
        inherited = error.what();
      }
    });
    waiting.wait_until(net::Clock::now() + 1min);
    lock.leave_failure("cannot download a.gz from any mirror:\n  first\n  second");
  }
  waiter.join();
  EXPECT_EQ(inherited,
            "another process has just failed: cannot download a.gz from any mirror:\n"
            "  first\n"
            "  second");
  EXPECT_THAT(server.requests(), IsEmpty());
}

TEST_F(DownloadRaceTest, AFailureOfLongAgoIsNotInherited) {
  write(path(".download.lock"), "cannot download a.gz from any mirror: yesterday");
  const MirrorServer server(test_support::serve(served));
  use(server);
  fetch();
  expect_all_there();
}

TEST_F(DownloadRaceTest, WaitingEndsAtTheDeadline) {
  const DownloadLock lock(options.directory, {}, {}, interrupt);
  options.mirrors = {dead_url()};
  options.deadline = net::Clock::now() + 50ms;
  EXPECT_THAT(failure(), StartsWith("another process is still downloading into "));
  EXPECT_EQ(code, std::errc::timed_out);
}

TEST_F(DownloadRaceTest, WaitingEndsWithTheInterrupt) {
  const DownloadLock lock(options.directory, {}, {}, interrupt);
  options.mirrors = {dead_url()};
  options.on_message = [this](std::string_view) { interrupt.interrupt(); };
  EXPECT_THAT(failure(), StartsWith("interrupted while another process"));
  EXPECT_EQ(code, std::errc::operation_canceled);
}

}  // namespace
}  // namespace disttf::roles
