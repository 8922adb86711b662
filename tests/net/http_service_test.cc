// The server for services on real sockets: consecutive requests, delayed answers, and that slow,
// silent and too large clients do not delay the others.
#include "net/http/http_service.h"

#include <gmock/gmock.h>

#include <chrono>
#include <deque>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/http/access_tokens.h"
#include "net/http/browser_guard.h"
#include "tests/data/scratch.h"
#include "tests/net/service_fixture.h"

namespace disttf::net {
namespace {

using std::chrono::milliseconds;
using test::RawClient;
using testing::HasSubstr;
using testing::StartsWith;

using HttpServiceTest = test::ServiceTest;

TEST_F(HttpServiceTest, RequestsFollowEachOtherOnAConnection) {
  serve();
  RawClient client = connect();
  for (const char* path : {"/now", "/later", "/now"}) {
    client.write("POST " + std::string(path) +
                 " HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab");
    const std::string reply = client.read("ab\n");
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(reply, HasSubstr("POST " + std::string(path) + " ab\n"));
  }
  EXPECT_EQ(service_->connections(), 1U);
}

TEST_F(HttpServiceTest, RequestsMayComeAtOnceAndAreAnsweredInOrder) {
  serve();
  RawClient client = connect();
  std::string all;
  for (int i = 0; i < 200; ++i) {
    all += "GET /" + std::string(i % 3 == 0 ? "later" : "now") + "?20 HTTP/1.1\r\nHost: x\r\n\r\n";
  }
  client.write(all + "GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string replies = client.read();
  std::size_t at = 0;
  for (int i = 0; i < 200; ++i) {
    at = replies.find(i % 3 == 0 ? "GET /later" : "GET /now", at);
    ASSERT_NE(at, std::string::npos) << i;
    at = replies.find("HTTP/1.1", at);
  }
  EXPECT_THAT(replies.substr(at), HasSubstr("GET /end"));
}

TEST_F(HttpServiceTest, WhatComesWhileAnAnswerIsMadeStandsBehindWhatWasThere) {
  serve();
  RawClient client = connect();
  constexpr int kRequests = 3000;
  std::thread writer([&client] {
    for (int i = 0; i < kRequests; ++i) {
      const std::string body = std::to_string(i);
      client.write("POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                   std::to_string(body.size()) + "\r\n\r\n");
      client.write(body);
    }
  });
  std::string replies = client.read("later " + std::to_string(kRequests - 1) + "\n");
  writer.join();
  std::size_t at = 0;
  for (int i = 0; i < kRequests; ++i) {
    at = replies.find("POST /later " + std::to_string(i) + "\n", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

TEST_F(HttpServiceTest, AnAnswerThatIsNotReadWaits) {
  serve();
  RawClient client = connect();
  client.write(
      "GET /now?1000000 HTTP/1.1\r\nHost: x\r\n\r\nGET /end HTTP/1.1\r\nHost: x\r\nConnection: "
      "close\r\n\r\n");
  RawClient other = connect();
  EXPECT_THAT(other.write("GET /other HTTP/1.1\r\nHost: x\r\n\r\n").read("GET"),
              HasSubstr("200 OK"));
  EXPECT_THAT(client.read(), HasSubstr("GET /end"));
}

TEST_F(HttpServiceTest, WhoAsksWhetherToGoOnIsToldSo) {
  serve();
  RawClient client = connect();
  client.write(
      "POST /now HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_THAT(client.read("\r\n\r\n"), StartsWith("HTTP/1.1 100 Continue\r\n\r\n"));
}

TEST_F(HttpServiceTest, WhoHasNoTokenIsAnsweredWhatIsOpenAlone) {
  const data::test::ScratchDirectory scratch;
  const std::string path = scratch.path() / "tokens";
  const std::string token(32, 't');
  data::test::write(path, data::test::bytes_of(token));
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  AccessTokens tokens(path, [](std::string_view) {});
  serve({}, {.refuse = [&tokens](const HttpServerRequest& request) {
          return request.path == "/health" ? std::nullopt : refuse_without_token(&tokens, request);
        }});
  RawClient client = connect();
  client.write("GET /now HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string refused = client.read("TOKEN\"}\n");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 401 Unauthorized\r\n"));
  EXPECT_THAT(refused, HasSubstr("WWW-Authenticate: Bearer realm=\"disttf\"\r\n"));
  // On the same connection.
  client.write("GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read("GET /health"), HasSubstr("200 OK"));
  client.write("GET /now HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\n\r\n");
  EXPECT_THAT(client.read("GET /now"), HasSubstr("200 OK"));
  // Before the body has arrived.
  RawClient waits = connect();
  waits.write("POST /now HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n");
  EXPECT_THAT(waits.read(), StartsWith("HTTP/1.1 401 Unauthorized\r\n"));
}

bool is_health(std::string_view path) { return path == "/health"; }

constexpr const char* kHealth = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";

TEST_F(HttpServiceTest, WhatIsQuickIsAnsweredWhileAllThreadsCompute) {
  serve({.is_quick = &is_health});
  std::vector<RawClient> busy;
  for (int i = 0; i < 2; ++i) {
    busy.push_back(connect());
    busy.back().write("GET /computes HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int now = counts_.computing; now <= i; now = counts_.computing) {
      counts_.computing.wait(now);
    }
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(connect().write(kHealth).read("health \n"), HasSubstr("200 OK"));
  }
  RawClient kept = connect();
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(kept.write(kHealth).read("health \n"), HasSubstr("200 OK"));
  }
  let_end();
  for (RawClient& each : busy) EXPECT_THAT(each.read("computes \n"), HasSubstr("200 OK"));
}

TEST_F(HttpServiceTest, AConnectionIsHandedOverWithAllThatHasCome) {
  serve({.is_quick = &is_health});
  RawClient pieces = connect();
  pieces.write(std::string(kHealth) +
               "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nab");
  EXPECT_THAT(pieces.read("health \n"), HasSubstr("200 OK"));
  pieces.write("cdefGET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string replies = pieces.read();
  EXPECT_THAT(replies, HasSubstr("POST /now abcdef\n"));
  EXPECT_THAT(replies, HasSubstr("GET /end \n"));
  RawClient waits = connect();
  waits.write("POST /now HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_THAT(waits.read("\r\n\r\n"), StartsWith("HTTP/1.1 100 Continue\r\n\r\n"));
  EXPECT_THAT(waits.write("ab").read("ab\n"), HasSubstr("POST /now ab\n"));
  std::string all;
  for (int i = 0; i < 100; ++i) all += "GET /later HTTP/1.1\r\nHost: x\r\n\r\n";
  RawClient many = connect();
  many.write(all + "GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(many.read(), HasSubstr("GET /end"));
}

TEST_F(HttpServiceTest, WhoMayNotAskIsNotToldToGoOn) {
  serve({.is_quick = &is_health}, {.refuse = [](const HttpServerRequest& request) {
          return refuse_other_pages(request, {});
        }});
  RawClient waits = connect();
  waits.write(
      "POST /now HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n");
  EXPECT_THAT(waits.read(), StartsWith("HTTP/1.1 421 Misdirected Request\r\n"));
}

TEST_F(HttpServiceTest, ClientsOfHttp10AreAnsweredAndClosedUnlessTheyKeepTheConnection) {
  serve();
  const std::string reply = connect().write("GET /now HTTP/1.0\r\n\r\n").read();
  EXPECT_THAT(reply, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(reply, HasSubstr("GET /now"));
  RawClient kept = connect();
  for (int i = 0; i < 2; ++i) {
    kept.write("GET /now HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_THAT(kept.read("now \n"), HasSubstr("Connection: keep-alive\r\n"));
  }
}

TEST_F(HttpServiceTest, ChunksFollowEachOtherOnAConnection) {
  serve();
  RawClient client = connect();
  for (int i = 0; i < 3; ++i) {
    client.write("POST /now HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
    client.write("2\r\nbc\r\n0\r\n\r\n");
    EXPECT_THAT(client.read("abc\n"), HasSubstr("POST /now abc\n"));
  }
}

TEST_F(HttpServiceTest, PagesOfOtherSitesAreRefused) {
  const ServiceNames names{{"models.example.org"}};
  serve({}, {.refuse = [&names](const HttpServerRequest& request) {
          return is_health(request.path) ? std::nullopt : refuse_other_pages(request, names);
        }});
  const auto status = [this](const std::string& head) {
    return connect().write(head + "Connection: close\r\n\r\n").read().substr(9, 3);
  };
  EXPECT_EQ(status("GET /now HTTP/1.1\r\nHost: 127.0.0.1:1\r\n"), "200");
  EXPECT_EQ(status("GET /now HTTP/1.1\r\nHost: rebound.evil.example:1\r\n"), "421");
  EXPECT_EQ(status("GET http://rebound.evil.example/now HTTP/1.1\r\nHost: localhost\r\n"), "421");
  EXPECT_EQ(status("GET /health HTTP/1.1\r\nHost: any.example\r\n"), "200");
  EXPECT_EQ(status("POST /now HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n"
                   "Content-Type: text/plain\r\nContent-Length: 0\r\n"),
            "403");
}

TEST_F(HttpServiceTest, WhatIsWrongIsRefusedInASentence) {
  serve({.max_body_bytes = 2048});
  for (const auto& [request, status] : std::vector<std::pair<std::string, std::string>>{
           {"nonsense\r\n\r\n", "501"},
           {"GET / HTTP/1.1\r\n\r\n", "400"},
           {"GET /\r\n\r\n", "400"},
           {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2049\r\n\r\n", "413"},
           {"GET / HTTP/2.0\r\nHost: x\r\n\r\n", "505"},
           {"GET /" + std::string(9000, 'x') + " HTTP/1.1\r\nHost: x\r\n\r\n", "431"},
           {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "501"}}) {
    const std::string reply = connect().write(request).read();
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 " + status)) << request.substr(0, 40);
    EXPECT_THAT(reply, HasSubstr("{\"error\":"));
  }
  const std::string failed =
      connect().write("GET /throws HTTP/1.1\r\nHost: x\r\n\r\n").read("broke\"}");
  EXPECT_THAT(failed, StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(failed, HasSubstr("{\"error\":\"it  broke\"}"));
  EXPECT_EQ(counts_.answers, 8);
}

TEST_F(HttpServiceTest, WhoIsSlowIsTold) {
  serve({.request_timeout = milliseconds(50)});
  EXPECT_THAT(connect().write("GET / HT").read(), StartsWith("HTTP/1.1 408"));
  EXPECT_EQ(connect().read(), "");  // a silent client gets no answer
}

TEST_F(HttpServiceTest, WhoIsOneTooManyIsTold) {
  serve({}, {.max_connections = 3});
  std::deque<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(connect());
    EXPECT_THAT(clients.back().write("GET / HTTP/1.1\r\nHost: x\r\n\r\n").read("GET"),
                HasSubstr("200"));
  }
  EXPECT_THAT(connect().read(), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(clients.back().write("GET / HTTP/1.1\r\nHost: x\r\n\r\n").read("GET"),
              HasSubstr("200"));
}

TEST_F(HttpServiceTest, BodiesThatAreNotWholeHaveABound) {
  serve({.max_body_bytes = 100'000, .max_held_bytes = 50'000});
  RawClient client = connect();
  client.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" +
               std::string(60'000, 'x'));
  EXPECT_THAT(client.read(), StartsWith("HTTP/1.1 503"));
}

TEST_F(HttpServiceTest, WhileItDrainsAReplyIsTheLastOfItsConnection) {
  serve();
  RawClient client = connect();
  EXPECT_THAT(client.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n").read("GET"),
              HasSubstr("keep-alive"));
  service_->drain();
  EXPECT_THAT(client.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n").read(),
              HasSubstr("Connection: close"));
  EXPECT_THAT(connect().write("GET / HTTP/1.1\r\nHost: x\r\n\r\n").read(), HasSubstr("200 OK"));
}

TEST_F(HttpServiceTest, AtTheEndWhoAsksNothingIsClosed) {
  serve();
  RawClient client = connect();
  EXPECT_THAT(client.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n").read("GET / \n"),
              HasSubstr("200 OK"));
  service_->stop();
  EXPECT_EQ(client.read(), "");
}

}  // namespace
}  // namespace disttf::net
