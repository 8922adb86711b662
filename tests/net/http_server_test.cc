// The server on real sockets: which requests are answered or refused, and that slow, silent and
// closed clients do not delay the others.
#include "net/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/post.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "net/http/http_local.h"
#include "net/transport/listening.h"
#include "tests/data/scratch.h"
#include "tests/net/raw_http_client.h"

namespace disttf::net {
namespace {

using std::chrono::milliseconds;
using test::RawClient;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kRequest = "GET /path?query HTTP/1.1\r\nHost: x\r\n\r\n";

class HttpServerTest : public testing::Test {
 protected:
  ~HttpServerTest() override { stop(); }

  void serve(HttpServer::Handler handler, const HttpServerOptions& options = {}) {
    server_.emplace(context_, std::move(handler), options);
    server_->listen(asio::local::stream_protocol::acceptor(context_, {path_}));
    auto tcp = listen_on(context_, 0, ListenScope::kLoopback);
    port_ = tcp.local_endpoint().port();
    server_->listen(std::move(tcp), "secret");
    thread_ = std::thread([this] { context_.run(); });
  }
  void echo(const HttpServerOptions& options = {}) {
    serve(
        [](const HttpServerRequest& request) {
          return HttpReply{.body = request.method + " " + request.path + " " + request.query + " " +
                                   request.body};
        },
        options);
  }
  // Returns once all connections are closed.
  void stop() {
    if (thread_.joinable()) {
      asio::post(context_, [this] { server_->stop(); });
      thread_.join();
    }
  }
  std::string ask(std::string_view request) const { return RawClient(path_).write(request).read(); }

  const data::test::ScratchDirectory directory_;
  const std::string path_ = directory_.path() / "control";
  std::uint16_t port_ = 0;
  asio::io_context context_{1};
  std::optional<HttpServer> server_;
  std::thread thread_;
};

TEST_F(HttpServerTest, AnswersAndCloses) {
  echo();
  EXPECT_EQ(ask(kRequest),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            "Content-Length: 16\r\n\r\nGET /path query ");
}

TEST_F(HttpServerTest, RefusesAPeerByWhoItIs) {
  LocalPeer seen;
  echo({.refuses_peer = [&seen](const LocalPeer& peer) {
    seen = peer;
    return std::optional<std::string>("not you");
  }});
  EXPECT_THAT(ask(kRequest), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(ask(kRequest), HasSubstr("{\"error\":\"not you\"}"));
  stop();
  EXPECT_EQ(seen.pid, getpid());
  EXPECT_EQ(seen.uid, geteuid());
}

TEST_F(HttpServerTest, AnswersHeadWithTheLengthOfABodyThatDoesNotCome) {
  echo();
  EXPECT_EQ(ask("HEAD /path?query HTTP/1.1\r\nHost: x\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            "Content-Length: 17\r\n\r\n");
}

TEST_F(HttpServerTest, AsksForNoTokenWhereNoneWasGiven) {
  echo();
  auto tcp = listen_on(context_, 0, ListenScope::kLoopback);
  const std::uint16_t port = tcp.local_endpoint().port();
  asio::post(context_, [this, &tcp] { server_->listen(std::move(tcp)); });
  EXPECT_THAT(RawClient(port).write(kRequest).read(), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(RawClient(port_).write(kRequest).read(), StartsWith("HTTP/1.1 401 "));
}

TEST_F(HttpServerTest, IsUnderstoodByTheLocalClient) {
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

TEST_F(HttpServerTest, TheLocalClientReportsTheStatusOfAnEmptyBody) {
  serve([](const HttpServerRequest&) { return HttpReply{.status = 503, .body = ""}; });
  std::vector<int> statuses;
  const std::error_code error =
      http_over_local({.socket = path_, .target = "/", .body = {}},
                      [&](int code, std::string_view /*piece*/) { statuses.push_back(code); });
  EXPECT_FALSE(error) << error.message();
  EXPECT_THAT(statuses, testing::ElementsAre(503));
}

TEST_F(HttpServerTest, RefusesWhatIsNoRequest) {
  echo();
  EXPECT_THAT(ask("GET /\r\n\r\n"), StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_THAT(ask("GARBAGE\r\n\r\n"), StartsWith("HTTP/1.1 501 Not Implemented\r\n"));
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n"),
              HasSubstr("{\"error\":\"the request's body is too large; 256 KiB are allowed\"}"));
  EXPECT_THAT(ask("GET /" + std::string(100'000, 'a')), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(ask(kRequest), HasSubstr("GET /path query")) << "other clients are not affected";
}

TEST_F(HttpServerTest, TellsWhatTheHandlerThrows) {
  serve([](const HttpServerRequest&) -> HttpReply { throw std::runtime_error("out of\n luck"); });
  const std::string reply = ask(kRequest);
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(reply, HasSubstr("{\"error\":\"out of  luck\"}"));
}

TEST_F(HttpServerTest, WantsTheTokenOnLoopback) {
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

TEST_F(HttpServerTest, GivesUpASlowRequest) {
  echo({.request_timeout = milliseconds(50)});
  RawClient silent(path_);
  RawClient half(path_);
  half.write("GET / HT");
  EXPECT_THAT(silent.read(), StartsWith("HTTP/1.1 408 Request Timeout\r\n"));
  EXPECT_THAT(half.read(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpServerTest, ForgetsWhoHangsUp) {
  echo({.max_connections = 1});
  for (int each = 0; each < 20; ++each) {
    const RawClient gone(path_);
  }
  RawClient half(path_);
  half.write("GET / HT").end_writing();
  EXPECT_EQ(half.read(), "");
  EXPECT_THAT(ask(kRequest), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpServerTest, TellsTheOneTooMany) {
  echo({.max_connections = 2});
  const RawClient first(path_);
  const RawClient second(path_);
  EXPECT_THAT(ask(kRequest), HasSubstr("{\"error\":\"too many connections are open; try again\"}"));
  // A listener of its own, so that a crowd on the port does not affect the owner of the socket.
  EXPECT_THAT(RawClient(port_)
                  .write("GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n\r\n")
                  .read(),
              StartsWith("HTTP/1.1 200 OK\r\n"));
}

class HttpStream : public HttpServerTest {
 protected:
  void serve_stream(const HttpServerOptions& options = {}) {
    serve(
        [this](const HttpServerRequest&) {
          lines_ = std::make_shared<HttpLineStream>(context_);
          return HttpReply{.content_type = "text/plain", .body = "first\n", .lines = lines_};
        },
        options);
  }
  // Runs on the server's thread.
  void append(const std::string& line) {
    asio::post(context_, [this, line] { lines_->append(line); });
  }
  // Returns whether the server still holds the stream.
  bool is_held() {
    std::promise<bool> answer;
    asio::post(context_, [&] { answer.set_value(lines_.use_count() > 1); });
    return answer.get_future().get();
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
  std::promise<void> written;
  asio::post(context_, [&] {  // in one call: nothing can be sent in between
    for (std::size_t each = 0; each < 2 * HttpLineStream::kMaxPendingBytes / 10; ++each) {
      lines_->append("123456789");
    }
    lines_->end();
    written.set_value();
  });
  written.get_future().get();
  const std::string text = reader.read();
  EXPECT_LT(text.size(), HttpLineStream::kMaxPendingBytes + 1000);
  // 26 214 lines of 10 bytes fit, and the same number does not.
  EXPECT_NE(text.find("(26214 lines dropped: the reader was too slow)"), std::string::npos);
}

TEST_F(HttpStream, EndsWithTheServerEvenWithoutAReader) {
  serve_stream({.stop_grace = milliseconds(50)});
  RawClient reader(path_);
  reader.write(kRequest);
  ASSERT_THAT(reader.read("first\n"), HasSubstr("first"));
  const RawClient silent(path_);
  append(std::string(200'000, 'x'));  // more than a socket accepts without a reader
  stop();                             // must return
  EXPECT_THROW(RawClient{path_}, std::runtime_error);
}

TEST_F(HttpServerTest, IsNotThere) {
  EXPECT_EQ(try_local(path_), std::errc::no_such_file_or_directory);
  echo();
  EXPECT_FALSE(try_local(path_));
  stop();
  EXPECT_EQ(try_local(path_), std::errc::connection_refused);
  EXPECT_EQ(try_local(std::string(200, 'a')), std::errc::filename_too_long);
}

}  // namespace
}  // namespace disttf::net
