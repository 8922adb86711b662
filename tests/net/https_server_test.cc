// The server for pages and commands over https. http_server_test.cc covers the requests and
// answers; this file covers their transport over TLS.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "net/http/http_line_stream.h"
#include "net/http/http_server.h"
#include "net/transport/listening.h"
#include "tests/net/https_client.h"
#include "tests/net/raw_http_client.h"

namespace disttf::net {
namespace {

using test::RawClient;
using test::TlsClient;
using testing::HasSubstr;
using testing::StartsWith;

class HttpsServerTest : public test::WithIdentities {
 protected:
  ~HttpsServerTest() override {
    if (thread_.joinable()) {
      asio::post(context_, [this] { server_->stop(); });
      thread_.join();
    }
  }
  // One address for any client, and one for browsers.
  void serve(const HttpServerOptions& options = {}) {
    server_.emplace(
        context_,
        [this](const HttpServerRequest& request) {
          ++answers_;
          if (request.path == "/lines") return HttpReply{.body = "first\n", .lines = lines_};
          if (request.path == "/large") return HttpReply{.body = std::string(3'000'000, 'l')};
          return HttpReply{.body = request.method + " " + request.path + " " + request.body};
        },
        options);
    const auto who = identity("p256/server.pem", "p256/server.key");
    auto plain = listen_on(context_, 0, ListenScope::kLoopback);
    port_ = plain.local_endpoint().port();
    server_->listen(std::move(plain), {.identity = who});
    auto browsers = listen_on(context_, 0, ListenScope::kLoopback);
    browser_port_ = browsers.local_endpoint().port();
    auto guard = std::make_shared<BrowserGuard>(BrowserAccess{
        .secret = "secret", .cookie = "c", .is_https = true, .is_open = [](auto) { return true; }});
    guard->add_link("token");
    server_->listen(std::move(browsers), std::move(guard), who);
    thread_ = std::thread([this] { context_.run(); });
  }
  [[nodiscard]] TlsClient connect(std::uint16_t port) const {
    return TlsClient(port, at("p256/ca.pem"));
  }

  asio::io_context context_{1};
  std::shared_ptr<HttpLineStream> lines_ = std::make_shared<HttpLineStream>(context_);
  std::optional<HttpServer> server_;
  std::thread thread_;
  std::uint16_t port_ = 0;
  std::uint16_t browser_port_ = 0;
  int answers_ = 0;  // belongs to the context's thread
};

TEST_F(HttpsServerTest, AnswersAndSendsCloseNotify) {
  serve();
  TlsClient client = connect(port_);
  ASSERT_TRUE(client.is_connected());
  client.write("POST /path HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab");
  EXPECT_THAT(client.read("none"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("POST /path ab")));
  EXPECT_TRUE(client.has_ended_well());
}

TEST_F(HttpsServerTest, ALargeAnswerComesWhole) {
  serve();
  TlsClient client = connect(port_);
  client.write("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string reply = client.read("none");
  EXPECT_EQ(reply.size() - reply.find("\r\n\r\n") - 4, 3'000'000U);
  EXPECT_TRUE(client.has_ended_well());
}

TEST_F(HttpsServerTest, ABrowserAsksAgainAndItsCookieIsForHttpsAlone) {
  serve();
  TlsClient client = connect(browser_port_);
  for (int i = 0; i < 3; ++i) {
    client.write("GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(client.read("GET /page "), StartsWith("HTTP/1.1 200 OK"));
  }
  client.write("GET /?token=token HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(client.read("Secure\r\n"),
              HasSubstr("Set-Cookie: c=secret; Path=/; HttpOnly; SameSite=Strict; Secure\r\n"));
}

// Lines are sent while the server waits for the reader's next bytes.
TEST_F(HttpsServerTest, LinesComeAsTheyAreSaid) {
  serve();
  TlsClient client = connect(browser_port_);
  client.write("GET /lines HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(client.read("first\n"), StartsWith("HTTP/1.1 200 OK"));
  for (const std::string line : {"second", "third"}) {
    asio::post(context_, [this, line] { lines_->append(line); });
    EXPECT_THAT(client.read(line + "\n"), HasSubstr(line + "\n"));
  }
  asio::post(context_, [this] { lines_->end(); });
  EXPECT_THAT(client.read("none"), testing::EndsWith("0\r\n\r\n"));
}

// All requests arrive before the first is answered. The thread's other work must come in between.
TEST_F(HttpsServerTest, WhoHasAskedMuchAtOnceLeavesRoomForOthers) {
  serve();
  TlsClient client = connect(browser_port_);
  std::promise<void> written;
  asio::post(context_, [&written] { written.get_future().wait(); });
  constexpr int kRequests = 500;
  for (int i = 0; i < kRequests; ++i) {  // one record each
    client.write("GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  int last = 0;
  int most = 0;  // answers between two turns
  std::function<void()> turn = [&] {
    most = std::max(most, answers_ - std::exchange(last, answers_));
    if (answers_ < kRequests) asio::post(context_, turn);
  };
  asio::post(context_, turn);
  written.set_value();
  EXPECT_THAT(client.read("GET /" + std::to_string(kRequests - 1) + " "),
              StartsWith("HTTP/1.1 200"));
  std::promise<int> seen;
  asio::post(context_, [&] { seen.set_value(most); });
  EXPECT_LE(seen.get_future().get(), 2);
}

TEST_F(HttpsServerTest, WhoAsksWithoutTlsIsToldSo) {
  serve();
  for (const std::uint16_t port : {port_, browser_port_}) {
    const std::string reply =
        RawClient(port).write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").read();
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 400 "));
    EXPECT_THAT(reply, HasSubstr(kHttpsAlone));
  }
}

TEST_F(HttpsServerTest, WhoShakesNoHandsHasNotForEver) {
  HttpServerOptions options;
  options.request_timeout = std::chrono::milliseconds(50);
  serve(options);
  RawClient silent(port_);
  RawClient begins(browser_port_);
  begins.write("\x16\x03\x01");
  EXPECT_TRUE(silent.is_closed());
  EXPECT_TRUE(begins.is_closed());
}

}  // namespace
}  // namespace disttf::net
