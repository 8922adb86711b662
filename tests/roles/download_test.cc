// Fetching files from a mirror on a real socket into a temporary directory.
#include "roles/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "data/error.h"
#include "data/sha256.h"
#include "net/http_error.h"
#include "roles/download_lock.h"
#include "tests/support/mirror_server.h"

namespace disttf::roles {
namespace {

using namespace std::chrono_literals;
using test_support::Files;
using test_support::Handler;
using test_support::MirrorConnection;
using test_support::MirrorRequest;
using test_support::MirrorServer;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;
using testing::Not;
using testing::StartsWith;

// For a mirror that stalls; long enough for an honest one on a machine that is busy with other
// tests.
constexpr auto kShortStall = 500ms;

std::string contents_of(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

// 200 000 bytes that are nowhere alike, so that a piece in the wrong place is noticed. They begin
// as gzip does.
std::string sample(unsigned seed) {
  std::string text(200'000, '\0');
  for (char& c : text) {
    seed = seed * 1664525U + 1013904223U;
    c = static_cast<char>(seed >> 24U);
  }
  text[0] = '\x1f';
  return text;
}

class DownloadTest : public testing::Test {
 protected:
  DownloadTest() {
    std::string name = testing::TempDir() + "/disttf_download_XXXXXX";
    options.directory = mkdtemp(name.data());
    options.on_message = [this](std::string_view text) { messages.emplace_back(text); };
    options.on_result = [this](std::string_view text) { results.emplace_back(text); };
    for (const auto& [target, contents] : served) {
      files.push_back({.name = target.substr(1),
                       .size_bytes = contents.size(),
                       .sha256 = data::sha256_hex(std::as_bytes(std::span(contents)))});
    }
  }
  ~DownloadTest() override { std::filesystem::remove_all(options.directory); }

  void use(const MirrorServer& server) { options.mirrors = {server.url()}; }
  void fetch() { fetch_files(files, options, interrupt); }
  // What fetching fails with; nothing when it does not.
  std::string failure() {
    try {
      fetch();
      return "";
    } catch (const DownloadError& error) {
      code = error.code();
      return error.what();
    }
  }
  std::filesystem::path path(const std::string& name) const { return options.directory / name; }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(options.directory)) {
      result.push_back(entry.path().filename());
    }
    std::ranges::sort(result);
    return result;
  }
  void expect_all_there() const {
    for (const auto& [target, contents] : served) {
      EXPECT_EQ(contents_of(path(target.substr(1))), contents) << target;
    }
    EXPECT_THAT(names(), ElementsAre(".download.lock", "a.gz", "b.gz"));
  }
  // A URL at which nobody listens.
  static std::string dead_url() {
    const MirrorServer gone(test_support::serve({}));
    return gone.url();
  }

  const Files served{{"/a.gz", sample(1)}, {"/b.gz", sample(2)}};
  std::vector<RemoteFile> files;
  DownloadOptions options;
  net::Interrupt interrupt;
  std::error_code code;
  std::vector<std::string> messages;
  std::vector<std::string> results;
};

TEST_F(DownloadTest, FetchesWhatIsMissing) {
  const MirrorServer server(test_support::serve(served));
  use(server);
  fetch();
  expect_all_there();
}

TEST_F(DownloadTest, SaysSoInTheTutorialsWords) {
  const MirrorServer server(test_support::serve(served));
  use(server);
  fetch();
  EXPECT_THAT(results, ElementsAre("Successfully downloaded a.gz 200000 bytes.",
                                   "Successfully downloaded b.gz 200000 bytes."));
}

TEST_F(DownloadTest, MakesTheDirectory) {
  const MirrorServer server(test_support::serve(served));
  use(server);
  const std::filesystem::path parent = options.directory;
  options.directory /= "x/y";
  fetch();
  expect_all_there();
  options.directory = parent;
}

TEST_F(DownloadTest, LeavesAloneWhatIsRight) {
  write(path("a.gz"), served.at("/a.gz"));
  const MirrorServer server(test_support::serve(served));
  use(server);
  fetch();
  expect_all_there();
  ASSERT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(server.requests().at(0).target, "/b.gz");
}

TEST_F(DownloadTest, WritesNothingWhenNothingIsMissing) {
  write(path("a.gz"), served.at("/a.gz"));
  write(path("b.gz"), served.at("/b.gz"));
  options.mirrors = {dead_url()};
  fetch();
  EXPECT_THAT(names(), ElementsAre("a.gz", "b.gz"));
}

TEST_F(DownloadTest, LeavesAFileWithOtherContentsAsItIs) {
  write(path("a.gz"), "Fashion-MNIST, say");
  const MirrorServer server(test_support::serve(served));
  use(server);
  EXPECT_THAT(failure(),
              AllOf(HasSubstr("a.gz has 18 bytes, expected 200000"), HasSubstr("move it away")));
  EXPECT_EQ(contents_of(path("a.gz")), "Fashion-MNIST, say");
  EXPECT_THAT(server.requests(), IsEmpty());
}

TEST_F(DownloadTest, ReplacesAFileWithOtherContentsWhenToldTo) {
  write(path("a.gz"), std::string(200'000, 'x'));
  const MirrorServer server(test_support::serve(served));
  use(server);
  options.replace_wrong = true;
  fetch();
  expect_all_there();
}

TEST_F(DownloadTest, ReportsProgressUpToTheLastByte) {
  const MirrorServer server(test_support::serve(served));
  use(server);
  std::uint64_t last = 0;
  options.on_progress = [&](const DownloadProgress& progress) {
    EXPECT_EQ(progress.total_bytes, 200'000U);
    last = progress.bytes;
  };
  fetch();
  EXPECT_EQ(last, 200'000U);
}

// --- transfers that break off ---

TEST_F(DownloadTest, ResumesABrokenTransfer) {
  const MirrorServer server(test_support::first_then(1, test_support::break_after(served, 150'000),
                                                     test_support::serve(served)));
  use(server);
  fetch();
  expect_all_there();
  EXPECT_EQ(server.requests().at(1).range_begin(), 150'000U);
}

TEST_F(DownloadTest, GoesOnAsLongAsABreakingMirrorBringsSomething) {
  const MirrorServer server(test_support::break_after(served, 70'000));
  use(server);
  options.attempts_per_mirror = 1;
  fetch();
  expect_all_there();
}

TEST_F(DownloadTest, StartsOverWhereAMirrorKnowsNoRanges) {
  const MirrorServer server(
      test_support::first_then(1, test_support::break_after(served, 150'000, false),
                               test_support::serve_without_ranges(served)));
  use(server);
  fetch();
  expect_all_there();
}

TEST_F(DownloadTest, GivesUpAMirrorThatBreaksOffAtTheSamePlace) {
  const MirrorServer server(test_support::break_after(served, 100'000, false));
  use(server);
  EXPECT_THAT(failure(), HasSubstr("closed after 100000 of 200000 bytes"));
  EXPECT_EQ(code, net::HttpError::kShortBody);
  EXPECT_EQ(server.requests().size(),
            4U);  // one that brought something, three that brought no more
}

TEST_F(DownloadTest, ResumesAStalledTransferThatBroughtSomething) {
  const MirrorServer server(test_support::first_then(1, test_support::stall_after(served, 100'000),
                                                     test_support::serve(served)));
  use(server);
  options.stall_timeout = kShortStall;
  fetch();
  expect_all_there();
  EXPECT_EQ(server.requests().at(1).range_begin(), 100'000U);
}

TEST_F(DownloadTest, LeavesAStalledMirrorForTheNext) {
  const MirrorServer stalled(test_support::stall_after(served, 1000));
  const MirrorServer good(test_support::serve(served));
  options.mirrors = {stalled.url(), good.url()};
  options.stall_timeout = kShortStall;
  fetch();
  expect_all_there();
  // What the first brought was kept; and it was not asked for the second file.
  EXPECT_EQ(good.requests().at(0).range_begin(), 1000U);
  EXPECT_EQ(stalled.requests().size(), 1U);
}

TEST_F(DownloadTest, KeepsThePartForTheNextRun) {
  const MirrorServer server(test_support::break_after(served, 60'000));
  use(server);
  options.attempts_per_mirror = 1;
  EXPECT_NE(failure(), "");
  EXPECT_EQ(contents_of(path("a.gz.part")), served.at("/a.gz").substr(0, 60'000));
}

TEST_F(DownloadTest, ResumesThePartOfAnEarlierRun) {
  write(path("a.gz.part"), served.at("/a.gz").substr(0, 50'000));
  const MirrorServer server(test_support::serve(served));
  use(server);
  fetch();
  expect_all_there();
  EXPECT_EQ(server.requests().at(0).range_begin(), 50'000U);
}

TEST_F(DownloadTest, NeedsNoMirrorForAPartThatIsWhole) {
  write(path("a.gz.part"), served.at("/a.gz"));
  write(path("b.gz.part"), served.at("/b.gz"));
  options.mirrors = {dead_url()};
  fetch();
  expect_all_there();
}

TEST_F(DownloadTest, DropsAPartOfSomethingElse) {
  write(path("a.gz.part"), std::string(50'000, 'x'));   // right length to resume, wrong bytes
  write(path("b.gz.part"), std::string(200'001, 'x'));  // too long
  const MirrorServer server(test_support::serve(served));
  use(server);
  fetch();
  expect_all_there();
}

TEST_F(DownloadTest, StartsOverWhenTheServerDoesNotHaveTheRange) {
  write(path("a.gz.part"), std::string(50'000, 'x'));
  const MirrorServer server(test_support::first_then(
      1,
      [](const MirrorRequest&, const MirrorConnection& connection) {
        connection.respond("416 Range Not Satisfiable", "");
      },
      test_support::serve(served)));
  use(server);
  fetch();
  expect_all_there();
}

// --- mirrors that are wrong ---

TEST_F(DownloadTest, RefusesAPageInTheFilesPlace) {
  const MirrorServer server(test_support::serve_page());
  use(server);
  EXPECT_THAT(failure(),
              AllOf(HasSubstr(server.url("/a.gz") + ": what the mirror sends has 55 bytes, "
                                                    "expected 200000"),
                    HasSubstr("an error page?")));
  EXPECT_EQ(code, data::DataError::kWrongSize);
  EXPECT_THAT(names(), Not(Contains("a.gz")));
}

TEST_F(DownloadTest, RefusesAPageOfTheFilesSize) {
  const MirrorServer server(test_support::serve({{"/a.gz", "<" + std::string(199'999, 'x')}}));
  use(server);
  const std::string sentence = failure();
  EXPECT_THAT(sentence, AllOf(HasSubstr(server.url("/a.gz")), HasSubstr("an error page?"),
                              HasSubstr("expected " + files.at(0).sha256)));
  EXPECT_EQ(code, data::DataError::kWrongChecksum);
}

TEST_F(DownloadTest, DropsWhatHasTheWrongChecksum) {
  std::string wrong = served.at("/a.gz");
  wrong[100'000] ^= 1;
  const MirrorServer server(test_support::serve({{"/a.gz", wrong}}));
  use(server);
  EXPECT_THAT(failure(), AllOf(HasSubstr("has SHA-256 "), Not(HasSubstr("page"))));
  EXPECT_EQ(server.requests().size(), 1U);
  EXPECT_THAT(names(), ElementsAre(".download.lock"));
}

TEST_F(DownloadTest, ReplacesAWrongFileByTheNextMirrors) {
  const MirrorServer wrong(test_support::serve({{"/a.gz", std::string(200'000, 'x')}}));
  const MirrorServer good(test_support::serve(served));
  options.mirrors = {wrong.url(), good.url()};
  fetch();
  expect_all_there();
  EXPECT_EQ(good.requests().at(0).range_begin(), std::nullopt);
}

TEST_F(DownloadTest, RefusesABodyLongerThanTheFile) {
  const MirrorServer server([this](const MirrorRequest&, const MirrorConnection& connection) {
    connection.send("HTTP/1.0 200 OK\r\n\r\n");
    while (connection.send(served.at("/a.gz"))) {
    }
  });
  use(server);
  EXPECT_THAT(failure(), HasSubstr("has more than the expected 200000 bytes"));
  EXPECT_THAT(contents_of(path("a.gz.part")).size(), Le(200'000U));
}

TEST_F(DownloadTest, RefusesABodyShorterThanTheFile) {
  const MirrorServer server([](const MirrorRequest&, const MirrorConnection& connection) {
    connection.send("HTTP/1.0 200 OK\r\n\r\nshort");
  });
  use(server);
  EXPECT_THAT(failure(), HasSubstr("has 5 bytes, expected 200000"));
}

TEST_F(DownloadTest, TriesTheMirrorsInTurn) {
  const MirrorServer missing(test_support::answer_not_found());
  const MirrorServer good(test_support::serve(served));
  options.mirrors = {dead_url(), missing.url(), good.url()};
  fetch();
  expect_all_there();
  // A mirror that failed once is not the first to be asked again.
  EXPECT_EQ(missing.requests().size(), 1U);
}

TEST_F(DownloadTest, HasOneLineForEachMirrorWhenAllFail) {
  const MirrorServer missing(test_support::answer_not_found());
  const std::string dead = dead_url();
  options.mirrors = {dead, missing.url()};
  EXPECT_EQ(failure(), "cannot download a.gz from any mirror:\n  " + dead + "a.gz: connecting to " +
                           dead.substr(7, 9) + " port " + dead.substr(17, dead.size() - 18) +
                           " failed: Connection refused\n  " + missing.url("/a.gz") +
                           ": the server answered 404 (Not Found)");
  EXPECT_THAT(names(), Not(Contains("a.gz")));
}

TEST_F(DownloadTest, AppendsTheNameToAMirrorsFolder) {
  const MirrorServer server(test_support::answer_not_found());
  options.mirrors = {server.url("/some/folder")};
  static_cast<void>(failure());
  EXPECT_EQ(server.requests().at(0).target, "/some/folder/a.gz");
}

TEST_F(DownloadTest, RefusesAMalformedMirror) {
  options.mirrors = {"mirror.example/mnist"};
  EXPECT_THROW(fetch(), std::invalid_argument);
  options.mirrors = {"http://mirror.example/get?file="};
  EXPECT_THROW(fetch(), std::invalid_argument);
  options.mirrors = {};
  EXPECT_THROW(fetch(), std::invalid_argument);
}

TEST_F(DownloadTest, RefusesAMalformedProxyBeforeAnything) {
  options.proxy.all_proxy = "socks5://127.0.0.1:1";
  EXPECT_THROW(fetch(), std::invalid_argument);
  EXPECT_THAT(names(), IsEmpty());
}

// --- ends ---

TEST_F(DownloadTest, TheDeadlineEndsEverything) {
  const MirrorServer server(test_support::stall_after(served, 1000));
  options.mirrors = {server.url(), server.url("/again/")};
  options.stall_timeout = 1h;
  options.deadline = net::Clock::now() + 100ms;
  EXPECT_THAT(failure(), HasSubstr("no time is left"));
  EXPECT_EQ(code, std::errc::timed_out);
}

TEST_F(DownloadTest, TheInterruptKeepsThePart) {
  const MirrorServer server([this](const MirrorRequest&, const MirrorConnection& connection) {
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n");
    connection.send(served.at("/a.gz").substr(0, 100'000));
    connection.wait_for_hangup();
  });
  use(server);
  options.stall_timeout = 1h;
  options.on_progress = [this](const DownloadProgress&) { interrupt.interrupt(); };
  EXPECT_EQ(failure(), "interrupted while downloading a.gz");
  EXPECT_EQ(code, std::errc::operation_canceled);
  EXPECT_GT(std::filesystem::file_size(path("a.gz.part")), 0U);
}

// --- the disk ---

TEST_F(DownloadTest, SaysWhenTheDirectoryCannotBeMade) {
  const MirrorServer server(test_support::serve(served));
  use(server);
  write(path("file"), "");
  const std::filesystem::path parent = options.directory;
  options.directory = path("file") / "below";
  EXPECT_THAT(failure(), StartsWith("cannot make the directory " + options.directory.string()));
  options.directory = parent;
}

TEST_F(DownloadTest, SaysWhenTheDirectoryCannotBeWritten) {
  const MirrorServer server(test_support::serve(served));
  use(server);
  const std::filesystem::path parent = options.directory;
  options.directory = "/proc/self";  // even root cannot
  EXPECT_THAT(failure(), StartsWith("cannot lock /proc/self/.download.lock: "));
  options.directory = parent;
}

TEST_F(DownloadTest, DoesNotFollowALinkInThePartsPlace) {
  write(path("precious"), "precious");
  std::filesystem::create_symlink("precious", path("a.gz.part"));
  const MirrorServer server(test_support::serve(served));
  use(server);
  EXPECT_THAT(failure(), StartsWith("cannot write "));
  EXPECT_EQ(contents_of(path("precious")), "precious");
}

// A limit on the size of files stands for the full disk: the write fails the same way.
TEST_F(DownloadTest, AFullDiskIsNotTheMirrorsFault) {
  const MirrorServer server(test_support::serve(served));
  const MirrorServer other(test_support::serve(served));
  options.mirrors = {server.url(), other.url()};
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit small{.rlim_cur = 100'000, .rlim_max = old.rlim_max};
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string sentence = failure();
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, previous);
  EXPECT_EQ(sentence, "cannot write " + path("a.gz.part").string() + ": File too large");
  EXPECT_THAT(names(), ElementsAre(".download.lock"));  // its space is given back
  EXPECT_THAT(other.requests(), IsEmpty());
}

// --- several processes ---

// Runs fetch() in `count` processes at once; true when all succeed.
class DownloadRaceTest : public DownloadTest {
 protected:
  bool fetch_in_processes(int count) {
    std::vector<pid_t> children;
    for (int i = 0; i < count; ++i) {
      const pid_t child = fork();
      if (child == 0) _exit(failure().empty() ? 0 : 1);
      children.push_back(child);
    }
    bool all_good = true;
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      all_good = all_good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return all_good;
  }
};

TEST_F(DownloadRaceTest, OnlyOneOfSeveralProcessesDownloads) {
  const MirrorServer server(test_support::serve(served));
  use(server);
  EXPECT_TRUE(fetch_in_processes(6));
  expect_all_there();
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(DownloadRaceTest, TheNextTakesOverFromOneThatIsKilled) {
  const MirrorServer server(test_support::first_then(1, test_support::stall_after(served, 100'000),
                                                     test_support::serve(served)));
  use(server);
  options.stall_timeout = 1h;
  const pid_t victim = fork();
  if (victim == 0) _exit(failure().empty() ? 0 : 1);
  while (server.requests().empty()) std::this_thread::yield();  // it holds the lock, and stalls
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
            "another process has just tried: cannot download a.gz from any mirror:\n  first\n"
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

TEST(DefaultMirrors, AreTheTwoThatEverybodyKnows) {
  EXPECT_THAT(default_mirrors(), ElementsAre("https://storage.googleapis.com/cvdf-datasets/mnist/",
                                             "https://ossci-datasets.s3.amazonaws.com/mnist/"));
}

}  // namespace
}  // namespace disttf::roles
