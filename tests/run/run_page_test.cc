// The page of a run on real sockets: what each client is served, that readers get every record
// once, and that hostile, slow or numerous clients do not hinder the others.
#include <gmock/gmock.h>

#include <asio/post.hpp>
#include <chrono>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "run/monitor/shell/page_server.h"
#include "run/outcome.h"
#include "tests/net/raw_http_client.h"
#include "tests/support/thrown.h"
#include "web/assets.h"

namespace disttf::roles {
namespace {

using net::test::RawClient;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::json;

// Records are numbers: the nth is {"kind":"step","step":n}.
class FakeFeed : public RunFeed {
 public:
  [[nodiscard]] std::string view() const override {
    return R"({"run":{},"id":)" + std::to_string(newest_) + padding_ + "}";
  }
  [[nodiscard]] std::uint64_t newest() const override { return newest_; }
  void subscribe(Listener listener) override { listener_ = std::move(listener); }

  void tell(std::size_t records, std::size_t bytes = 0) {
    for (std::size_t each = 0; each < records; ++each) {
      ++newest_;
      listener_(newest_, record(newest_) + std::string(bytes, ' '));
    }
  }
  static std::string record(std::uint64_t id) {
    return R"({"kind":"step","step":)" + std::to_string(id) + "}";
  }
  std::string padding_;

 private:
  std::uint64_t newest_ = 0;
  Listener listener_;
};

class RunPageTest : public testing::Test {
 protected:
  RunPageTest() {
    server_.emplace(context_, PageOptions{}, page_, [this](const auto& request) {
      ++changes_;
      return net::HttpReply{.body = request.method + " " + request.path};
    });
    const std::string url = server_->url();
    host_ = url.substr(7, url.size() - 8);
    port_ = static_cast<std::uint16_t>(std::stoi(host_.substr(host_.find(':') + 1)));
    link_ = server_->make_link();
    thread_ = std::thread([this] { context_.run(); });
  }
  ~RunPageTest() override { stop(); }

  void stop() {
    if (thread_.joinable()) {
      asio::post(context_, [this] { server_->stop(); });
      thread_.join();
    }
  }
  // On the server's thread; returns when it is done.
  template <typename Work>
  void on_thread(Work work) {
    std::promise<void> done;
    asio::post(context_, [&] {
      work();
      done.set_value();
    });
    done.get_future().get();
  }
  void tell(std::size_t records, std::size_t bytes = 0) {
    on_thread([&] { feed_.tell(records, bytes); });
  }

  std::string head(const std::string& method, const std::string& target,
                   const std::string& fields = {}) const {
    return method + " " + target + " HTTP/1.1\r\nHost: " + host_ + "\r\n" + fields + "\r\n";
  }
  // A request on a connection of its own.
  std::string ask(const std::string& method, const std::string& target,
                  const std::string& fields = {}) const {
    return RawClient(port_).write(head(method, target, "Connection: close\r\n" + fields)).read();
  }
  std::string get(const std::string& target, const std::string& fields = {}) const {
    return ask("GET", target, fields);
  }
  // "Cookie: ...", had by the link.
  std::string cookie() const {
    const std::string reply = get(link_.substr(link_.find("/?")));
    const std::size_t at = reply.find("Set-Cookie: ") + 12;
    return "Cookie: " + reply.substr(at, reply.find(';', at) - at) + "\r\n";
  }
  std::string origin() const { return "Origin: http://" + host_ + "\r\n"; }

  asio::io_context context_{1};
  FakeFeed feed_;  // the server's thread, once it runs
  RunPage page_{feed_, {"restart", "stop"}};
  std::optional<PageServer> server_;
  std::string host_;
  std::string link_;
  std::uint16_t port_ = 0;
  std::atomic<int> changes_ = 0;
  std::thread thread_;
};

// Two runs that have been written down.
class RunsPageTest : public RunPageTest {
 protected:
  RunsPageTest() {
    on_thread([this] {
      page_.show_runs({{.name = "/srv/a", .page = &page_}, {.name = "/srv/b", .page = &second_}});
      feed_.tell(1);
      second_feed_.tell(3);
    });
  }
  ~RunsPageTest() override { stop(); }

  FakeFeed second_feed_;
  RunPage second_{second_feed_, {}};
};

std::string body_of(const std::string& reply) { return reply.substr(reply.find("\r\n\r\n") + 4); }

TEST_F(RunPageTest, ServesWhatThePageConsistsOf) {
  for (const web::Asset& asset : web::assets()) {
    const std::string plain = get(std::string(asset.path));
    EXPECT_THAT(plain, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), Not(HasSubstr("Content-Encoding")),
                             HasSubstr("Content-Security-Policy: default-src 'none'; "),
                             HasSubstr("Content-Type: " + std::string(asset.content_type))));
    EXPECT_EQ(body_of(plain).size(), asset.bytes) << asset.path;
    const std::string packed =
        get(std::string(asset.path), "Accept-Encoding: deflate, gzip, br\r\n");
    EXPECT_THAT(packed, HasSubstr("Content-Encoding: gzip\r\n"));
    EXPECT_EQ(body_of(packed), std::string(asset.gzip.begin(), asset.gzip.end())) << asset.path;
  }
  EXPECT_THAT(get("/", "Accept-Encoding: gzip;q=0\r\n"), HasSubstr("<!doctype html>"));
  EXPECT_THAT(get("/assets/LICENSE"), StartsWith("HTTP/1.1 401 "));
}

TEST_F(RunPageTest, DoesNotSendTwiceWhatABrowserHas) {
  const std::string reply = get("/assets/app.js");
  const std::size_t at = reply.find("ETag: ") + 6;
  const std::string tag = reply.substr(at, reply.find('\r', at) - at);
  const std::string again = get("/assets/app.js", "If-None-Match: " + tag + "\r\n");
  EXPECT_THAT(again, StartsWith("HTTP/1.1 304 Not Modified\r\n"));
  EXPECT_EQ(body_of(again), "");
  EXPECT_THAT(get("/assets/app.js", "If-None-Match: \"other\"\r\n"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(RunPageTest, AnswersOneRequestAfterTheOther) {
  RawClient browser(port_);
  for (int each = 0; each < 3; ++each) {
    const std::string reply = browser.write(head("GET", "/v1/run")).read("}\n");
    EXPECT_THAT(reply,
                AllOf(HasSubstr("Connection: keep-alive\r\n"), HasSubstr(R"({"run":{},"id":0})")));
  }
  const std::string two = browser.write(head("HEAD", "/v1/run")).read("\r\n\r\n");
  EXPECT_THAT(two, AllOf(HasSubstr("Content-Length: 18\r\n"), testing::EndsWith("\r\n\r\n")));
  EXPECT_THAT(browser.write(head("GET", "/v1/run")).read("}\n"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(RunPageTest, DoesNotTakeASecondRequestForPartOfTheFirst) {
  const std::string two = head("GET", "/v1/run") + head("POST", "/v1/stop", cookie() + origin());
  const std::string replies = RawClient(port_).write(two).read();
  EXPECT_THAT(replies, AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("Connection: close")));
  EXPECT_EQ(changes_, 0);
}

TEST_F(RunPageTest, ShowsToAllAndLetsChangeWhoHasTheLink) {
  EXPECT_EQ(Json::parse(body_of(get("/v1/access"))).at("verbs"), Json::array());
  EXPECT_THAT(ask("POST", "/v1/stop", origin()), StartsWith("HTTP/1.1 401 "));
  EXPECT_EQ(changes_, 0);
  const std::string mine = cookie();
  EXPECT_EQ(Json::parse(body_of(get("/v1/access", mine))).at("verbs"), Json({"restart", "stop"}));
  EXPECT_THAT(ask("POST", "/v1/stop", mine), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(ask("POST", "/v1/stop", mine + "Origin: http://127.0.0.1:1\r\n"),
              StartsWith("HTTP/1.1 403 "));
  EXPECT_EQ(changes_, 0);
  EXPECT_THAT(ask("POST", "/v1/stop", mine + origin()), HasSubstr("POST /v1/stop"));
  EXPECT_EQ(changes_, 1);
  EXPECT_THAT(get(link_.substr(link_.find("/?"))), Not(HasSubstr("Set-Cookie")))
      << "it was good once";
  EXPECT_THAT(ask("POST", "/v1/run", mine + origin()), StartsWith("HTTP/1.1 405 "));
}

TEST_F(RunPageTest, IsNotReachedByANameThatItDoesNotKnow) {
  const std::string mine = cookie();
  for (const std::string target :
       {"/", "/v1/run", "/v1/stream", "/v1/access", "/v1/stop", "/nowhere"}) {
    const std::string rebound =
        "GET " + target + " HTTP/1.1\r\nHost: rebound.example:" + std::to_string(port_) + "\r\n";
    EXPECT_THAT(RawClient(port_).write(rebound + "Connection: close\r\n\r\n").read(),
                StartsWith("HTTP/1.1 421 "));
    EXPECT_THAT(RawClient(port_).write(rebound + "Connection: close\r\n" + mine + "\r\n").read(),
                StartsWith("HTTP/1.1 421 "));
  }
  EXPECT_THAT(RawClient(port_).write("GET / HTTP/1.1\r\nHost: x\r\n\r\n").read("\r\n"),
              StartsWith("HTTP/1.1 421 "));
  EXPECT_EQ(changes_, 0);
}

TEST_F(RunPageTest, RefusesPathsThatOthersReadDifferently) {
  for (const char* const path : {"/x/../v1/stop", "/assets/../v1/stop", "/%2e%2e/v1/stop",
                                 "//v1/stop", "/v1\\stop", "/assets/%2e%2e/%2e%2e/etc/passwd"}) {
    EXPECT_THAT(ask("GET", path, cookie() + origin()), StartsWith("HTTP/1.1 400 ")) << path;
  }
  EXPECT_EQ(changes_, 0);
}

TEST_F(RunPageTest, RefusesRequestsThatOthersReadDifferently) {
  EXPECT_THAT(ask("POST", "/v1/stop", "Transfer-Encoding: gzip, chunked\r\n"),
              StartsWith("HTTP/1.1 501 "));
  EXPECT_THAT(ask("POST", "/v1/stop", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
              StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask("GET", "/", "X: a\r\n b\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask("GET", "/", "Host: localhost\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask("GET", "/", "X: " + std::string(100'000, 'a') + "\r\n"),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(get("/v1/run"), StartsWith("HTTP/1.1 200 ")) << "other clients are not affected";
}

TEST_F(RunPageTest, StreamsTheViewAndThenEveryRecord) {
  tell(3);
  RawClient reader(port_);
  reader.write(head("GET", "/v1/stream"));
  EXPECT_THAT(reader.read("\n\n"),
              AllOf(HasSubstr("Content-Type: text/event-stream\r\n"),
                    HasSubstr("id: 3\nevent: view\ndata: {\"run\":{},\"id\":3}\n\n")));
  tell(2);
  const std::string events = reader.read("\"step\":5}\n\n");
  EXPECT_THAT(events, AllOf(HasSubstr("id: 4\ndata: " + FakeFeed::record(4) + "\n\n"),
                            HasSubstr("id: 5\ndata: " + FakeFeed::record(5) + "\n\n")));
  stop();
  EXPECT_THAT(reader.read(), HasSubstr("event: end\ndata: {}\n\n"));
}

TEST_F(RunPageTest, GoesOnWhereAReaderWas) {
  tell(10);
  for (const std::string& fields : {std::string("Last-Event-ID: 7\r\n"), std::string()}) {
    RawClient reader(port_);
    reader.write(head("GET", fields.empty() ? "/v1/stream?after=7" : "/v1/stream", fields));
    const std::string text = reader.read("\"step\":10}\n\n");
    EXPECT_THAT(text, AllOf(Not(HasSubstr("event: view")), Not(HasSubstr("id: 7\n")),
                            HasSubstr("id: 8\n")));
  }
  for (const char* const unknown :
       {"11", "x", "-1", "18446744073709551616"}) {  // of another run, say
    RawClient reader(port_);
    reader.write(head("GET", "/v1/stream", "Last-Event-ID: " + std::string(unknown) + "\r\n"));
    EXPECT_THAT(reader.read("\n\n"), HasSubstr("event: view")) << unknown;
  }
}

TEST_F(RunPageTest, HoldsABoundedNumberOfRecords) {
  tell(5 * RunPage::kMaxHeldBytes / 1000, 1000);
  const std::uint64_t newest = 5 * RunPage::kMaxHeldBytes / 1000;
  RawClient late(port_);
  late.write(head("GET", "/v1/stream?after=1"));
  EXPECT_THAT(late.read("\n\n"), HasSubstr("event: view"))
      << "what comes after 1 is not held any more";
  RawClient near(port_);
  near.write(head("GET", "/v1/stream?after=" + std::to_string(newest - 100)));
  EXPECT_THAT(near.read("\"step\":" + std::to_string(newest) + "}"), Not(HasSubstr("event: view")));
}

TEST_F(RunPageTest, GivesUpAReaderThatDoesNotRead) {
  RawClient slow(port_);
  slow.write(head("GET", "/v1/stream"));
  ASSERT_THAT(slow.read("\n\n"), HasSubstr("event: view"));
  tell(3 * net::HttpLineStream::kMaxPendingBytes / 1000,
       1000);                            // in one go: nothing is sent meanwhile
  const std::string text = slow.read();  // returns: the stream has ended
  EXPECT_LT(text.size(), net::HttpLineStream::kMaxPendingBytes + 1000);
  RawClient again(port_);
  again.write(head("GET", "/v1/stream?after=0"));
  EXPECT_THAT(again.read("\n\n"), HasSubstr("event: view"));
}

TEST_F(RunPageTest, HasABoundedNumberOfReaders) {
  std::vector<RawClient> readers;
  for (std::size_t each = 0; each < RunPage::kMaxReaders; ++each) {
    readers.emplace_back(port_);
    readers.back().write(head("GET", "/v1/stream"));
    ASSERT_THAT(readers.back().read("\n\n"), HasSubstr("event: view"));
  }
  EXPECT_THAT(get("/v1/stream"), StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(get("/v1/run"), StartsWith("HTTP/1.1 200 ")) << "what is no stream is served";
  readers.pop_back();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::string reply;
  do {  // until the server has noticed
    RawClient next(port_);
    next.write(head("GET", "/v1/stream"));
    reply = next.read("\r\n");
  } while (!reply.starts_with("HTTP/1.1 200") && std::chrono::steady_clock::now() < deadline);
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 "));
}

TEST_F(RunPageTest, IsThereBehindAThousandHalfOpenConnections) {
  RawClient reader(port_);
  reader.write(head("GET", "/v1/stream"));
  ASSERT_THAT(reader.read("\n\n"), HasSubstr("event: view"));
  std::vector<RawClient> silent;
  for (int each = 0; each < 1000; ++each) {
    silent.emplace_back(port_);
    if (each % 2 == 0) silent.back().write("GET / HTTP/1.1\r\nHost: 127");
    if (each % 100 == 50) {
      EXPECT_THAT(get("/v1/run"), StartsWith("HTTP/1.1 200 ")) << each;
    }
  }
  EXPECT_THAT(get("/v1/run"), StartsWith("HTTP/1.1 200 "));
  tell(1);
  EXPECT_THAT(reader.read("\"step\":1}"), HasSubstr("id: 1\n"))
      << "a client that is being served is not evicted";
}

TEST_F(RunPageTest, EndsAtOnceThoughABrowserKeepsItsConnections) {
  RawClient idle(port_);
  idle.write(head("GET", "/v1/run"));
  ASSERT_THAT(idle.read("}\n"), HasSubstr("keep-alive"));
  stop();  // returns, without the grace that a reply under way has
  EXPECT_EQ(idle.read(), "");
}

TEST_F(RunPageTest, TakesALargeView) {
  on_thread([&] { feed_.padding_ = ",\"x\":\"" + std::string(1'000'000, 'x') + "\""; });
  RawClient reader(port_);
  reader.write(head("GET", "/v1/stream"));
  EXPECT_GT(reader.read("\n\n").size(), 1'000'000U);
}

TEST(PageServer, SaysWhereItCannotListen) {
  asio::io_context context;
  FakeFeed feed;
  RunPage page(feed, {});
  const PageServer first(context, {}, page);
  const std::string url = first.url();
  const auto port = static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  const auto failure =
      thrown<Failure>([&] { const PageServer second(context, {.port = port}, page); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->exit_code(), kCannotListen);
  EXPECT_THAT(failure->what(),
              HasSubstr("\"127.0.0.1\" port " + std::to_string(port) + ": Address already in use"));
  EXPECT_THROW(PageServer(context, {.host = "no such host.invalid"}, page), Failure);
}

TEST(PageServer, HasLinksThatDiffer) {
  asio::io_context context;
  FakeFeed feed;
  RunPage page(feed, {});
  PageServer server(context, {}, page);
  const std::string link = server.make_link();
  EXPECT_THAT(link, testing::MatchesRegex("http://127.0.0.1:[0-9]+/\\?token=[0-9a-f]{32}"));
  EXPECT_NE(link, server.make_link());
}

TEST_F(RunsPageTest, EachHasAView) {
  EXPECT_EQ(Json::parse(body_of(get("/v1/run"))).at("id"), 1);
  EXPECT_EQ(Json::parse(body_of(get("/v1/run?run=0"))).at("id"), 1);
  EXPECT_EQ(Json::parse(body_of(get("/v1/run?run=1"))).at("id"), 3);
  for (const char* const wrong : {"2", "-1", "b", "", "99999999999999999999"}) {
    const std::string reply = get(std::string("/v1/run?run=") + wrong);
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 400 "));
    EXPECT_EQ(Json::parse(body_of(reply)).at("error"),
              "run: \"" + std::string(wrong) +
                  "\" is not a run of this page, which has 2; the first is 0");
  }
}

TEST_F(RunsPageTest, AreToldByName) {
  EXPECT_EQ(Json::parse(body_of(get("/v1/access"))).at("runs"),
            Json::parse(R"([{"name":"/srv/a","records":1},{"name":"/srv/b","records":3}])"));
}

TEST_F(RunsPageTest, EachHasAStreamAndAllEnd) {
  RawClient first(port_);
  first.write(head("GET", "/v1/stream"));
  first.read("event: view");
  RawClient second(port_);
  second.write(head("GET", "/v1/stream?run=1&after=2"));
  EXPECT_THAT(second.read("\n\n"), Not(HasSubstr("event: view")));
  on_thread([this] { second_feed_.tell(1); });
  EXPECT_THAT(second.read("\"step\":4}\n\n"), Not(HasSubstr("event: view")));
  stop();
  EXPECT_THAT(second.read(), HasSubstr("event: end"));
  EXPECT_THAT(first.read(), HasSubstr("event: end"));
}

}  // namespace
}  // namespace disttf::roles
