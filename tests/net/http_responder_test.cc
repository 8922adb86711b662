// Answers on an io_context, at a Unix socket, TCP and https: who is answered or refused, the audit
// log, and streams of lines. http_service_test.cc and https_service_test.cc cover what all services
// have.
#include "net/http/http_responder.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <asio/local/stream_protocol.hpp>
#include <asio/post.hpp>
#include <asio/use_future.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "net/http/access_tokens.h"
#include "net/http/browser_guard.h"
#include "net/http/http_session.h"
#include "net/tcp/sockets.h"
#include "tests/net/https_client.h"
#include "tests/net/raw_http_client.h"

namespace disttf::net {
namespace {

using std::chrono::milliseconds;
using test::RawClient;
using test::TlsClient;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kRequest = "GET /path?query HTTP/1.1\r\nHost: x\r\n\r\n";

// A responder at a Unix socket, and at a port.
class HttpResponderTest : public test::WithIdentities {
 protected:
  ~HttpResponderTest() override { stop(); }

  void serve(HttpResponder::Answer answer, HttpListenerOptions at_port) {
    server_.emplace(context_, std::move(answer), options_);
    local_.use = HttpUse::kCommand;
    server_->listen(asio::local::stream_protocol::acceptor(context_, {path_}), local_);
    port_ = listen(std::move(at_port));
    thread_ = std::thread([this] { context_.run(); });
  }
  // Returns the port.
  std::uint16_t listen(HttpListenerOptions options) {
    auto acceptor = listen_on(context_, 0, ListenScope::kLoopback);
    const std::uint16_t port = acceptor.local_endpoint().port();
    server_->listen(std::move(acceptor), std::move(options));
    return port;
  }
  void echo() {
    serve(
        [](const HttpServerRequest& request) {
          return HttpReply{.body = request.method + " " + request.path + " " + request.query + " " +
                                   request.body};
        },
        {.use = HttpUse::kCommand, .refuse = bearer_of("secret")});
  }
  // Returns once all connections are closed.
  void stop() {
    if (thread_.joinable()) {
      asio::post(context_, [this] { server_->stop(); });
      thread_.join();
    }
  }
  // Calls `work` on the server's thread.
  template <class Work>
  auto on_thread(Work work) {
    return asio::post(context_, asio::use_future(std::move(work))).get();
  }
  std::string ask(std::string_view request) const { return RawClient(path_).write(request).read(); }

  const std::string path_ = at("control");
  HttpResponderOptions options_;
  HttpListenerOptions local_;  // of the Unix socket
  std::uint16_t port_ = 0;
  asio::io_context context_{1};
  std::optional<HttpResponder> server_;
  std::thread thread_;
};

TEST_F(HttpResponderTest, AnswersAndCloses) {
  echo();
  EXPECT_EQ(ask(kRequest),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            "Content-Length: 16\r\n\r\nGET /path query ");
}

TEST_F(HttpResponderTest, RefusesAPeerByWhoItIs) {
  LocalPeer seen;
  local_.refuses_peer = [&seen](const LocalPeer& peer) {
    seen = peer;
    return std::optional<std::string>("not you");
  };
  echo();
  EXPECT_THAT(ask(kRequest), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(ask(kRequest), HasSubstr("{\"error\":\"not you\"}"));
  stop();
  EXPECT_EQ(seen.pid, getpid());
  EXPECT_EQ(seen.uid, geteuid());
}

TEST_F(HttpResponderTest, AnswersHeadWithTheLengthOfABodyThatDoesNotCome) {
  echo();
  EXPECT_EQ(ask("HEAD /path?query HTTP/1.1\r\nHost: x\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            "Content-Length: 17\r\n\r\n");
}

TEST_F(HttpResponderTest, AsksForNoTokenWhereNoneWasGiven) {
  echo();
  auto tcp = listen_on(context_, 0, ListenScope::kLoopback);
  const std::uint16_t port = tcp.local_endpoint().port();
  asio::post(context_,
             [this, &tcp] { server_->listen(std::move(tcp), {.use = HttpUse::kCommand}); });
  EXPECT_THAT(RawClient(port).write(kRequest).read(), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(RawClient(port_).write(kRequest).read(), StartsWith("HTTP/1.1 401 "));
}

TEST_F(HttpResponderTest, IsUnderstoodByTheLocalClient) {
  echo();
  std::string body;
  int status = 0;
  const std::error_code error = http_over_local(
      {.socket = path_, .method = "POST", .target = "/a%20b", .body = std::string(100'000, 'x')},
      [&](int code, std::string_view piece) {
        status = code;
        body += piece;
      });
  EXPECT_FALSE(error) << error.message();
  EXPECT_EQ(status, 200);
  EXPECT_EQ(body, "POST /a b  " + std::string(100'000, 'x'));
}

TEST_F(HttpResponderTest, TheLocalClientReportsTheStatusOfAnEmptyBody) {
  serve([](const HttpServerRequest&) { return HttpReply{.status = 503, .body = ""}; }, {});
  std::vector<int> statuses;
  const std::error_code error =
      http_over_local({.socket = path_, .target = "/", .body = {}},
                      [&](int code, std::string_view /*piece*/) { statuses.push_back(code); });
  EXPECT_FALSE(error) << error.message();
  EXPECT_THAT(statuses, testing::ElementsAre(503));
}

TEST_F(HttpResponderTest, WantsTheTokenOnLoopback) {
  echo();
  const auto ask_port = [this](const std::string& field) {
    return RawClient(port_).write("GET / HTTP/1.1\r\nHost: x\r\n" + field + "\r\n").read();
  };
  for (const char* wrong : {"", "Authorization: Bearer \r\n", "Authorization: Bearer secreT\r\n",
                            "Authorization: Bearer secrets\r\n", "Authorization: secret\r\n",
                            "Authorization: Basic secret\r\n"}) {
    EXPECT_THAT(ask_port(wrong), StartsWith("HTTP/1.1 401 Unauthorized\r\n")) << wrong;
  }
  EXPECT_THAT(ask_port("Authorization: Bearer secret\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpResponderTest, GivesUpASlowRequest) {
  options_.service.request_timeout = milliseconds(50);
  echo();
  RawClient silent(path_);
  RawClient half(path_);
  half.write("GET / HT");
  EXPECT_THAT(silent.read(), StartsWith("HTTP/1.1 408 Request Timeout\r\n"));
  EXPECT_THAT(half.read(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpResponderTest, ForgetsWhoHangsUp) {
  local_.max_connections = 1;
  echo();
  for (int each = 0; each < 20; ++each) {
    const RawClient gone(path_);
  }
  RawClient half(path_);
  half.write("GET / HT").end_writing();
  EXPECT_EQ(half.read(), "");
  EXPECT_THAT(ask(kRequest), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpResponderTest, TellsTheOneTooMany) {
  local_.max_connections = 2;
  echo();
  const RawClient first(path_);
  const RawClient second(path_);
  EXPECT_THAT(ask(kRequest), HasSubstr("{\"error\":\"too many connections are open; try again\"}"));
  // A listener of its own, so that a crowd on the port does not affect the owner of the socket.
  EXPECT_THAT(RawClient(port_)
                  .write("GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n\r\n")
                  .read(),
              StartsWith("HTTP/1.1 200 OK\r\n"));
}

class HttpStream : public HttpResponderTest {
 protected:
  void serve_stream() {
    serve(
        [this](const HttpServerRequest&) {
          lines_ = std::make_shared<HttpLineStream>();
          return HttpReply{.content_type = "text/plain", .body = "first\n", .lines = lines_};
        },
        {});
  }
  // Runs on the server's thread.
  void append(const std::string& line) {
    asio::post(context_, [this, line] { lines_->append(line); });
  }
  // Returns whether the server still holds the stream.
  bool is_held() {
    return on_thread([this] { return lines_.use_count() > 1; });
  }

  std::shared_ptr<HttpLineStream> lines_;  // belongs to the server's thread
};

TEST_F(HttpStream, SendsLinesAsTheyCome) {
  serve_stream();
  RawClient reader(path_);
  reader.write(kRequest);
  EXPECT_THAT(reader.read("first\n\r\n"),
              HasSubstr("Transfer-Encoding: chunked\r\n\r\n6\r\nfirst"));
  append("second");
  EXPECT_EQ(reader.read("second\n\r\n"), "7\r\nsecond\n\r\n");
  asio::post(context_, [this] { lines_->end(); });
  EXPECT_EQ(reader.read(), "0\r\n\r\n");
}

TEST_F(HttpStream, SendsNoChunksToAClientOfHttp10) {
  serve_stream();
  RawClient reader(path_);
  reader.write("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const std::string head = reader.read("first\n");
  EXPECT_THAT(head, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("Transfer-Encoding")));
  append("second");
  asio::post(context_, [this] { lines_->end(); });
  EXPECT_EQ(reader.read(), "second\n");
}

TEST_F(HttpStream, NoticesAReaderThatGoesAway) {
  serve_stream();
  {
    RawClient reader(path_);
    reader.write(kRequest);
    ASSERT_THAT(reader.read("first\n"), HasSubstr("first"));
    EXPECT_TRUE(is_held());
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (is_held() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(is_held()) << "without a line having been written";
}

TEST_F(HttpStream, LeavesOutWhatASlowReaderDoesNotTake) {
  serve_stream();
  RawClient reader(path_);
  reader.write(kRequest);
  ASSERT_THAT(reader.read("first\n"), HasSubstr("first"));
  on_thread([this] {  // in one call: nothing can be sent in between
    for (std::size_t each = 0; each < 2 * HttpLineStream::kMaxPendingBytes / 10; ++each) {
      lines_->append("123456789");
    }
    lines_->end();
  });
  const std::string text = reader.read();
  EXPECT_LT(text.size(), HttpLineStream::kMaxPendingBytes + 1000);
  // 26 214 lines of 10 bytes fit, and the same number does not.
  EXPECT_NE(text.find("(26214 lines dropped: the reader was too slow)"), std::string::npos);
}

TEST_F(HttpStream, EndsWithTheServerEvenWithoutAReader) {
  options_.service.stop_grace = milliseconds(50);
  serve_stream();
  RawClient reader(path_);
  reader.write(kRequest);
  ASSERT_THAT(reader.read("first\n"), HasSubstr("first"));
  const RawClient silent(path_);
  append(std::string(200'000, 'x'));  // more than a socket accepts without a reader
  stop();                             // must return
  EXPECT_THROW(RawClient{path_}, std::runtime_error);
}

TEST_F(HttpResponderTest, IsNotThere) {
  EXPECT_EQ(try_local(path_), std::errc::no_such_file_or_directory);
  echo();
  EXPECT_FALSE(try_local(path_));
  stop();
  EXPECT_EQ(try_local(path_), std::errc::connection_refused);
  EXPECT_EQ(try_local(std::string(200, 'a')), std::errc::filename_too_long);
}

// Over https, for browsers.
class HttpsResponderTest : public HttpResponderTest {
 protected:
  ~HttpsResponderTest() override { stop(); }

  void serve_browsers() {
    guard_.add_link("token");
    serve(
        [this](const HttpServerRequest& request) {
          ++answers_;
          return HttpReply{.body = request.method + " " + request.path + " ",
                           .lines = request.path == "/lines" ? lines_ : nullptr};
        },
        {.use = HttpUse::kBrowser,
         .identity = identity("p256/server.pem", "p256/server.key"),
         .refuse = [this](HttpServerRequest& request) { return guard_.check(request); }});
  }
  [[nodiscard]] TlsClient connect() const { return TlsClient(port_, at("p256/ca.pem")); }

  BrowserGuard guard_{
      {.secret = "secret", .cookie = "c", .is_https = true, .is_open = [](auto) { return true; }}};
  std::shared_ptr<HttpLineStream> lines_ = std::make_shared<HttpLineStream>();
  int answers_ = 0;  // belongs to the server's thread
};

TEST_F(HttpsResponderTest, ABrowserAsksAgainAndItsCookieIsForHttpsAlone) {
  serve_browsers();
  TlsClient client = connect();
  for (int i = 0; i < 3; ++i) {
    client.write("GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(client.read("GET /page "), StartsWith("HTTP/1.1 200 OK"));
  }
  client.write("GET /?token=token HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(client.read("Secure\r\n"),
              HasSubstr("Set-Cookie: c=secret; Path=/; HttpOnly; SameSite=Strict; Secure\r\n"));
}

// Lines are sent while the server waits for the reader's next bytes.
TEST_F(HttpsResponderTest, LinesComeAsTheyAreSaid) {
  serve_browsers();
  TlsClient client = connect();
  client.write("GET /lines HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(client.read("GET /lines "), StartsWith("HTTP/1.1 200 OK"));
  for (const std::string line : {"second", "third"}) {
    asio::post(context_, [this, line] { lines_->append(line); });
    EXPECT_THAT(client.read(line + "\n"), HasSubstr(line + "\n"));
  }
  asio::post(context_, [this] { lines_->end(); });
  EXPECT_THAT(client.read("none"), testing::EndsWith("0\r\n\r\n"));
  EXPECT_TRUE(client.has_ended_well());
}

// All requests arrive before the first is answered. The thread's other work must come in between.
TEST_F(HttpsResponderTest, WhoHasAskedMuchAtOnceLeavesRoomForOthers) {
  serve_browsers();
  TlsClient client = connect();
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
  EXPECT_LE(on_thread([&most] { return most; }), 2);
}

TEST_F(HttpsResponderTest, WhoShakesNoHandsHasNotForEver) {
  options_.service.request_timeout = milliseconds(50);
  serve_browsers();
  RawClient silent(port_);
  RawClient begins(port_);
  begins.write("\x16\x03\x01");
  EXPECT_EQ(silent.read(), "");
  EXPECT_TRUE(begins.is_closed());
}

// Which clients may ask, and which requests are in the audit log.
class ServerWithTokens : public HttpResponderTest {
 protected:
  ServerWithTokens() {
    options_.audit_interval = std::chrono::hours(1);
    options_.audit = [this](const HttpServerRequest& request, const std::string& client, int status,
                            std::size_t untold) {
      audited_ += request.method + " " + request.path + " " + std::to_string(status) + " by " +
                  client + " +" + std::to_string(untold) + "\n";
    };
    put("tokens", kOne);
    std::filesystem::permissions(at("tokens"), std::filesystem::perms(0600));
    tokens_ = std::make_shared<AccessTokens>(at("tokens"), [](std::string_view) {});
  }
  ~ServerWithTokens() override { stop(); }

  void serve_at_port(HttpListenerOptions options) {
    serve(
        [](const HttpServerRequest& request) {
          return HttpReply{.body = request.method + " " + request.path};
        },
        std::move(options));
  }
  void serve_with_tokens() {
    serve_at_port({.use = HttpUse::kCommand, .refuse = [this](const HttpServerRequest& request) {
                     return refuse_without_token(tokens_.get(), request);
                   }});
  }
  [[nodiscard]] std::string ask_port(const std::string& method, const std::string& fields) const {
    return RawClient(port_)
        .write(method + " /x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + fields +
               "\r\n")
        .read();
  }

  const std::string kOne = std::string(32, 'a');
  std::shared_ptr<AccessTokens> tokens_;
  std::string audited_;  // of the server's thread until that has ended
};

TEST_F(ServerWithTokens, AnswersWhoSaysOneAndTellsOthersHow) {
  serve_with_tokens();
  EXPECT_THAT(ask_port("GET", "Authorization: Bearer " + kOne + "\r\n"), HasSubstr("GET /x"));
  const std::string reply = ask_port("GET", "");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 401 Unauthorized\r\n"));
  EXPECT_THAT(reply, HasSubstr("WWW-Authenticate: Bearer realm=\"disttf\"\r\n"
                               "WWW-Authenticate: Basic realm=\"disttf\", charset=\"UTF-8\"\r\n"));
  EXPECT_THAT(ask_port("GET", "Authorization: Bearer " + std::string(32, 'b') + "\r\n"),
              StartsWith("HTTP/1.1 401 "));
}

TEST_F(ServerWithTokens, OfAPageWantsTheCookieForChangesAsWell) {
  BrowserGuard guard({.secret = std::string(32, 's'),
                      .cookie = "page",
                      .is_open = [](std::string_view path) { return path == "/x"; },
                      .tokens = tokens_});
  serve_at_port({.use = HttpUse::kBrowser,
                 .refuse = [&guard](HttpServerRequest& request) { return guard.check(request); }});
  const std::string bearer = "Authorization: Bearer " + kOne + "\r\n";
  const std::string cookie = "Cookie: page=" + std::string(32, 's') + "\r\n";
  EXPECT_THAT(ask_port("GET", ""), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(ask_port("GET", bearer), HasSubstr("GET /x"));
  EXPECT_THAT(ask_port("GET", cookie), HasSubstr("GET /x"));
  EXPECT_THAT(ask_port("POST", bearer + "Origin: http://127.0.0.1\r\n"),
              StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(ask_port("POST", cookie + "Origin: http://127.0.0.1\r\n"), HasSubstr("POST /x"));
}

TEST_F(ServerWithTokens, TellsWhoHasAskedForMoreThanReading) {
  serve_with_tokens();
  const std::string bearer = "Authorization: Bearer " + kOne + "\r\n";
  for (const char* method : {"GET", "HEAD", "OPTIONS"}) {
    EXPECT_THAT(ask_port(method, bearer), StartsWith("HTTP/1.1 200 "));
  }
  EXPECT_THAT(ask_port("POST", bearer), HasSubstr("POST /x"));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(ask_port("DELETE", ""), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(ask("PUT /y HTTP/1.1\r\nHost: x\r\n\r\n"), HasSubstr("PUT /y"));
  stop();
  EXPECT_THAT(audited_, testing::MatchesRegex("POST /x 200 by 127\\.0\\.0\\.1:[0-9]+ .0\n"
                                              "DELETE /x 401 by 127\\.0\\.0\\.1:[0-9]+ .0\n"
                                              "PUT /y 200 by uid [0-9]+, pid " +
                                              std::to_string(::getpid()) + " .0\n"))
      << "one line per interval for refused requests";
}

TEST_F(ServerWithTokens, ReportsTheNumberOfUnreportedRefusals) {
  options_.audit_interval = std::chrono::milliseconds(200);
  serve_with_tokens();
  // Repeats until a line appears after some requests without one.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  int asked = 0;
  std::string told;
  while (told.find('\n') == told.rfind('\n') && std::chrono::steady_clock::now() < until) {
    static_cast<void>(ask_port("DELETE", ""));
    ++asked;
    told = on_thread([this] { return audited_; });
  }
  const std::string last = told.substr(told.find('\n') + 1);
  EXPECT_EQ(std::stoi(last.substr(last.rfind('+'))), asked - 2) << told;
}

}  // namespace
}  // namespace disttf::net
