// The address on real sockets, and the file.
#include "run/monitor/shell/metrics_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <fstream>
#include <iterator>

#include "run/outcome.h"
#include "tests/data/scratch.h"
#include "tests/support/http_get.h"

namespace disttf::roles {
namespace {

using test_support::http_ask;
using test_support::http_body;
using test_support::http_get;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::uint16_t port_of(const MetricsAddress& address) {
  const std::string& target = address.target();
  std::uint16_t port = 0;
  std::from_chars(target.data() + target.rfind(':') + 1, target.data() + target.size(), port);
  return port;
}

class MetricsAddressTest : public testing::Test {
 protected:
  Meters meters_{"worker:1", "0.1.0", "avx2"};
};

TEST_F(MetricsAddressTest, AnswersAScrape) {
  const MetricsAddress address({.port = 0}, meters_);
  meters_.trainer().step.set(7);
  const std::string reply = http_get(port_of(address), "/metrics");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; "
                                "charset=utf-8\r\n"));
  EXPECT_THAT(reply, HasSubstr("\ndisttf_step{task=\"worker:1\"} 7\n"));
  EXPECT_THAT(reply, HasSubstr("\nprocess_resident_memory_bytes{task=\"worker:1\"} "));
}

TEST_F(MetricsAddressTest, AnswersOneOfOpenMetrics) {
  const MetricsAddress address({.port = 0}, meters_);
  const std::string reply =
      http_get(port_of(address), "/metrics", "Accept: application/openmetrics-text\r\n");
  EXPECT_THAT(reply, HasSubstr("\r\nContent-Type: application/openmetrics-text; version=1.0.0; "
                               "charset=utf-8\r\n"));
  EXPECT_THAT(reply, EndsWith("\n# EOF\n"));
}

TEST_F(MetricsAddressTest, AnswersHeadWithoutABody) {
  const MetricsAddress address({.port = 0}, meters_);
  const std::string reply =
      http_ask(port_of(address), "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(reply, Not(HasSubstr("Content-Length: 0\r\n")));
  EXPECT_THAT(reply, EndsWith("\r\n\r\n"));
}

TEST_F(MetricsAddressTest, HasNothingElse) {
  const MetricsAddress address({.port = 0}, meters_);
  for (const char* const path : {"/", "/metrics/", "/metrics/x", "/targets"}) {
    EXPECT_THAT(http_get(port_of(address), path), StartsWith("HTTP/1.1 404 Not Found\r\n")) << path;
  }
  EXPECT_THAT(http_ask(port_of(address),
                       "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"),
              StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
}

// A page of another site whose name was made to lead here: its browser asks with that name.
TEST_F(MetricsAddressTest, OfThisMachineRejectsRequestsForAnotherHost) {
  const MetricsAddress address({.port = 0}, meters_);
  const auto reply_for = [&](const std::string& host) {
    return http_ask(port_of(address), "GET /metrics HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  };
  for (const char* const host : {"localhost", "localhost:9400", "127.0.0.1:9400", "[::1]:9400"}) {
    EXPECT_THAT(reply_for(host), StartsWith("HTTP/1.1 200 OK\r\n")) << host;
  }
  for (const char* const host : {"example.com", "example.com:9400", "localhost.example.com"}) {
    EXPECT_THAT(reply_for(host), StartsWith("HTTP/1.1 421 ")) << host;
  }
  const MetricsAddress everywhere({.port = 0, .host = "all"}, meters_);
  EXPECT_THAT(
      http_ask(port_of(everywhere), "GET /metrics HTTP/1.1\r\nHost: worker-0.mnist:9400\r\n\r\n"),
      StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(MetricsAddressTest, TellsTargetsOnceThereAreSome) {
  MetricsAddress address({.port = 0}, meters_);
  address.set_targets("[]\n");
  const std::string reply = http_get(port_of(address), "/targets");
  EXPECT_THAT(reply, HasSubstr("\r\nContent-Type: application/json\r\n"));
  EXPECT_EQ(http_body(reply), "[]\n");
}

TEST_F(MetricsAddressTest, ThatIsInUseIsASentence) {
  const MetricsAddress first({.port = 0}, meters_);
  try {
    const MetricsAddress second({.port = port_of(first)}, meters_);
    FAIL() << "two listen on one port";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.exit_code(), kCannotListen);
    EXPECT_EQ(failure.what(),
              "--metrics_port: cannot listen on " + first.target() + ": Address already in use");
  }
}

TEST_F(MetricsAddressTest, IsNamedAsAScraperReachesIt) {
  const MetricsAddress loopback({.port = 0}, meters_);
  EXPECT_EQ(loopback.target_at(5), "127.0.0.1:5");
  const MetricsAddress everywhere({.port = 0, .host = "all"}, meters_);
  EXPECT_THAT(everywhere.target_at(5), EndsWith(":5"));
  EXPECT_THAT(everywhere.target_at(5), Not(HasSubstr("all")));
  EXPECT_THAT(http_get(port_of(everywhere), "/metrics"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

class MetricsFile : public MetricsAddressTest {
 protected:
  [[nodiscard]] std::string path() const { return (directory_.path() / "x.prom").string(); }
  [[nodiscard]] std::string text() const {
    std::ifstream file(path());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const data::test::ScratchDirectory directory_;
};

TEST_F(MetricsFile, HasTheLastValues) {
  {
    const MetricsAddress address({.textfile = path()}, meters_);
    EXPECT_EQ(address.target(), "");
    meters_.trainer().step.set(7);
  }
  EXPECT_THAT(text(), HasSubstr("\ndisttf_step{task=\"worker:1\"} 7\n"));
  EXPECT_THAT(directory_.names(), testing::ElementsAre("x.prom"));
}

// node_exporter has metrics of these names itself, and would drop one of the two.
TEST_F(MetricsFile, HasNothingOfTheProcess) {
  { const MetricsAddress address({.textfile = path()}, meters_); }
  EXPECT_THAT(text(), HasSubstr("disttf_build_info"));
  EXPECT_THAT(text(), Not(HasSubstr("process_")));
}

TEST_F(MetricsFile, MayBeReadByOthers) {
  { const MetricsAddress address({.textfile = path()}, meters_); }
  EXPECT_NE(std::filesystem::status(path()).permissions() & std::filesystem::perms::others_read,
            std::filesystem::perms::none);
}

TEST_F(MetricsFile, ThatCannotBeWrittenEndsNothing) {
  { const MetricsAddress address({.textfile = path() + "/below/x.prom"}, meters_); }
  EXPECT_TRUE(directory_.names().empty());
}

}  // namespace
}  // namespace disttf::roles
