// Fetching files from a mirror on a real socket into a temporary directory.
#include "storage/download/download.h"

#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>

#include "data/error.h"
#include "net/http/http_error.h"
#include "tests/storage/download_fixture.h"

namespace disttf::roles {
namespace {

using namespace std::chrono_literals;
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
  EXPECT_THAT(failure(), AllOf(HasSubstr(server.url("/a.gz") +
                                         ": the mirror's response has 55 bytes, expected 200000"),
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

TEST(DefaultMirrors, AreTheTwoWellKnownOnes) {
  EXPECT_THAT(default_mirrors(), ElementsAre("https://storage.googleapis.com/cvdf-datasets/mnist/",
                                             "https://ossci-datasets.s3.amazonaws.com/mnist/"));
}

}  // namespace
}  // namespace disttf::roles
