// The page in a process that does something else: what other threads tell it is served, and what
// it is asked for is done.
#include <gmock/gmock.h>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <stdexcept>
#include <string>

#include "run/monitor/shell/page_server.h"
#include "run/process/event_loop.h"
#include "tests/net/raw_http_client.h"

namespace disttf::roles {
namespace {

using net::test::RawClient;
using testing::HasSubstr;
using testing::StartsWith;

class PageThreadTest : public testing::Test {
 protected:
  std::string host() const {
    const std::string& link = page_.link();
    return link.substr(7, link.find('/', 7) - 7);
  }
  std::uint16_t port() const {
    return static_cast<std::uint16_t>(std::stoi(host().substr(host().find(':') + 1)));
  }
  std::string ask(const std::string& line, const std::string& fields = {}) const {
    return RawClient(port())
        .write(line + " HTTP/1.1\r\nConnection: close\r\nHost: " + host() + "\r\n" + fields +
               "\r\n")
        .read();
  }
  std::string may_change() const {
    const std::string reply = ask("GET " + page_.link().substr(page_.link().find("/?")));
    const std::size_t at = reply.find("Set-Cookie: ") + 12;
    return "Cookie: " + reply.substr(at, reply.find(';', at) - at) + "\r\nOrigin: http://" +
           host() + "\r\n";
  }

  std::atomic<int> saved_ = 0;
  PageThread page_{{},
                   {.save =
                        [this] {
                          ++saved_;
                          return std::string("saving");
                        },
                    .trace = [] { return std::string("collecting"); },
                    .stop = {}}};
};

TEST_F(PageThreadTest, ServesWhatAnotherThreadTells) {
  RawClient reader(port());
  reader.write("GET /v1/stream HTTP/1.1\r\nHost: " + host() + "\r\n\r\n");
  ASSERT_THAT(reader.read("\n\n"), HasSubstr("event: view"));
  page_.take(R"({"kind":"step","time":1.0,"step":7,"loss":0.5})");
  page_.take("no record");
  EXPECT_THAT(reader.read("\"loss\":0.5}\n\n"), HasSubstr("id: 1\ndata: {\"kind\":\"step\""));
  EXPECT_THAT(ask("GET /v1/run"), HasSubstr(R"("series":{"loss":{"steps":[7])"));
}

TEST_F(PageThreadTest, ChangesWhatItMay) {
  const std::string mine = may_change();
  EXPECT_THAT(ask("GET /v1/access", mine), HasSubstr(R"({"verbs":["save","trace"]})"));
  EXPECT_THAT(ask("GET /v1/save", mine), StartsWith("HTTP/1.1 405 "));
  EXPECT_EQ(saved_, 0);
  EXPECT_THAT(ask("POST /v1/save", mine), HasSubstr(R"({"message":"saving"})"));
  EXPECT_EQ(saved_, 1);
  EXPECT_THAT(ask("POST /v1/trace", mine), HasSubstr(R"({"message":"collecting"})"));
  EXPECT_THAT(ask("POST /v1/stop", mine), StartsWith("HTTP/1.1 404 ")) << "this one cannot";
  EXPECT_THAT(ask("POST /v1/save"), StartsWith("HTTP/1.1 401 "));
  EXPECT_EQ(saved_, 1);
}

// Serving that a task can do without: an exception of a handler ends neither it nor the task.

TEST(KeepRunning, RunsTheHandlersBehindOneThatThrows) {
  asio::io_context context;
  int done = 0;
  for (int i = 0; i < 3; ++i) {
    asio::post(context, [] { throw std::runtime_error("of the test"); });
    asio::post(context, [&done] { ++done; });
  }
  keep_running(context, "the page");
  EXPECT_EQ(done, 3);
}

}  // namespace
}  // namespace disttf::roles
