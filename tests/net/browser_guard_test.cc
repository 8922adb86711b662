// Access control of a page: the names under which it is reachable, the origin of the requesting
// page, and which requests, of any method, only the link's cookie permits.
#include "net/http/browser_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace disttf::net {
namespace {

using testing::HasSubstr;

constexpr const char* kSecret = "0123456789abcdef0123456789abcdef";

class BrowserGuardTest : public testing::Test {
 protected:
  static BrowserAccess access() {
    return {.secret = kSecret,
            .cookie = "disttf_8080",
            .names = {"train.example.org"},
            .is_open = [](std::string_view path) { return path == "/" || path == "/v1/run"; }};
  }
  static HttpServerRequest request(const std::string& method, const std::string& path) {
    HttpServerRequest request;
    request.method = method;
    request.path = path;
    request.host = "127.0.0.1:8080";
    return request;
  }
  static HttpServerRequest with_cookie(HttpServerRequest request,
                                       const std::string& value = kSecret) {
    request.cookie = "other=1; disttf_8080=" + value + "; last=2";
    return request;
  }
  // Returns 0 if the request may be answered.
  int status_of(HttpServerRequest request) {
    const std::optional<HttpReply> reply = guard_.check(request);
    may_change_ = request.may_change;
    return reply ? reply->status : 0;
  }
  int status_at(const std::string& host) {
    HttpServerRequest asked = request("GET", "/v1/run");
    asked.host = host;
    return status_of(asked);
  }

  BrowserGuard guard_{access()};
  bool may_change_ = false;
};

TEST_F(BrowserGuardTest, IsReachedByAddressesAndNamesThatAreKnown) {
  for (const char* const host :
       {"127.0.0.1", "127.0.0.1:8080", "127.0.0.1:9", "127.8.8.8:1", "localhost", "LOCALHOST:1",
        "localhost.", "[::1]:8080", "train.example.org", "Train.Example.org:443"}) {
    EXPECT_EQ(status_at(host), 0) << host;
  }
}

TEST_F(BrowserGuardTest, IsNotReachedByOtherNames) {
  for (const char* const host :
       {"", "evil.example", "localhost.evil.example", "evil.example:8080", "127.0.0.1.evil.example",
        "10.0.0.1", "127.1", "0.0.0.0:8080", "user@127.0.0.1", "127.0.0.1/x", "127.0.0.1?x",
        "[::2]", "example.org", "localhost:x", "127.0.0.1:0"}) {
    EXPECT_EQ(status_at(host), 421) << host;
  }
}

TEST_F(BrowserGuardTest, AClientOfHttp10MayNameNoHostAsNoBrowserDoes) {
  HttpServerRequest asked = request("GET", "/");
  asked.host = "";
  EXPECT_EQ(status_of(asked), 421);
  asked.is_http10 = true;
  EXPECT_NE(status_of(asked), 421);
}

TEST_F(BrowserGuardTest, RefusesAnotherNameBeforeAnythingElse) {
  HttpServerRequest asked = with_cookie(request("POST", "/nowhere"));
  asked.host = "rebound.example";
  asked.origin = "http://rebound.example";
  EXPECT_EQ(status_of(asked), 421);
  guard_.add_link("token");
  asked = request("GET", "/");
  asked.query = "token=token";
  asked.host = "rebound.example";
  EXPECT_EQ(status_of(asked), 421) << "and the link stays good";
  asked.host = "localhost";
  EXPECT_THAT(guard_.check(asked)->fields,
              testing::Contains(testing::Pair("Set-Cookie", testing::_)));
}

TEST_F(BrowserGuardTest, OfAllAddressesTakesEveryAddressAndNoName) {
  BrowserAccess everywhere = access();
  everywhere.address = "0.0.0.0";
  guard_ = BrowserGuard(everywhere);
  EXPECT_EQ(status_at("10.0.0.1:80"), 0);
  EXPECT_EQ(status_at("[fe80::1]"), 0);
  EXPECT_EQ(status_at("evil.example"), 421);
  everywhere.address = "10.0.0.1";
  guard_ = BrowserGuard(everywhere);
  EXPECT_EQ(status_at("10.0.0.1:80"), 0);
  EXPECT_EQ(status_at("10.0.0.2:80"), 421);
}

TEST_F(BrowserGuardTest, LetsAnyClientReadWhatIsOpen) {
  EXPECT_EQ(status_of(request("GET", "/")), 0);
  EXPECT_FALSE(may_change_);
  EXPECT_EQ(status_of(request("HEAD", "/v1/run")), 0);
  EXPECT_EQ(status_of(request("GET", "/v1/logs/worker:0")), 401);
}

TEST_F(BrowserGuardTest, WantsTheCookieForTheRestWhateverTheMethod) {
  for (const char* const method :
       {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "MKCOL"}) {
    for (const char* const path : {"/v1/stop", "/v1/pods/worker:1/restart", "/nowhere"}) {
      HttpServerRequest asked = request(method, path);
      asked.origin = "http://127.0.0.1:8080";
      EXPECT_EQ(status_of(asked), 401) << method << path;
      EXPECT_EQ(status_of(with_cookie(asked)), 0) << method << path;
      EXPECT_TRUE(may_change_);
    }
  }
  for (const char* const path : {"/", "/v1/run"}) {
    EXPECT_EQ(status_of(request("DELETE", path)), 401) << "open paths allow only reading";
  }
}

TEST_F(BrowserGuardTest, KnowsTheCookieFromOthers) {
  const HttpServerRequest logs = request("GET", "/v1/logs/worker:0");
  EXPECT_EQ(status_of(with_cookie(logs)), 0);
  for (const std::string wrong :
       {"", "0", "0123456789abcdef0123456789abcdee", "0123456789abcdef0123456789abcdef0"}) {
    EXPECT_EQ(status_of(with_cookie(logs, wrong)), 401) << wrong;
  }
  HttpServerRequest other = logs;
  other.cookie = "disttf_8081=" + std::string(kSecret) + ";xdisttf_8080=" + kSecret;
  EXPECT_EQ(status_of(other), 401) << "another page of the same host has another name for it";
  other.cookie = "disttf_8080=" + std::string(kSecret);
  EXPECT_EQ(status_of(other), 0);
  other.cookie = std::string(5000, ';') + " =; disttf_8080";
  EXPECT_EQ(status_of(other), 401);
}

TEST_F(BrowserGuardTest, WantsThePagesOwnOriginForChanges) {
  HttpServerRequest asked = with_cookie(request("POST", "/v1/stop"));
  for (const char* const origin :
       {"", "null", "http://evil.example", "http://127.0.0.1:9999", "http://127.0.0.1",
        "https://127.0.0.1:8081", "http://localhost:8080", "file://", "http://127.0.0.1:8080/x"}) {
    asked.origin = origin;
    EXPECT_EQ(status_of(asked), 403) << origin;
  }
  asked.origin = "http://127.0.0.1:8080";
  EXPECT_EQ(status_of(asked), 0);
  asked.origin = "https://train.example.org";
  EXPECT_EQ(status_of(asked), 0) << "a proxy that hands on another Host";
}

// An attacker in the network path can pretend to be the same host over http.
TEST(BrowserGuardOverHttps, ItsOwnOriginIsOverHttps) {
  BrowserGuard guard({.secret = kSecret,
                      .cookie = "c",
                      .names = {"train.example.org"},
                      .is_https = true,
                      .is_open = [](std::string_view) { return false; }});
  HttpServerRequest asked;
  asked.method = "POST";
  asked.path = "/v1/stop";
  asked.host = "train.example.org:8080";
  asked.cookie = "c=" + std::string(kSecret);
  asked.origin = "http://train.example.org:8080";
  EXPECT_TRUE(guard.check(asked).has_value());
  asked.origin = "https://train.example.org:8080";
  EXPECT_FALSE(guard.check(asked).has_value());
}

TEST_F(BrowserGuardTest, GivesTheCookieForALinkOnce) {
  guard_.add_link("first");
  HttpServerRequest link = request("GET", "/");
  link.query = "token=first";
  std::optional<HttpReply> reply = guard_.check(link);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 303);
  EXPECT_EQ(
      head_text(*reply, false),
      "HTTP/1.1 303 See Other\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
      "Location: /\r\nSet-Cookie: disttf_8080=" +
          std::string(kSecret) +
          "; Path=/; HttpOnly; SameSite=Strict\r\nContent-Length: 0\r\n\r\n");
  reply = guard_.check(link);
  ASSERT_TRUE(reply);
  EXPECT_FALSE(reply->has_field("Set-Cookie")) << "it has been used";
  EXPECT_TRUE(reply->has_field("Location"));
}

TEST_F(BrowserGuardTest, GivesNoCookieForAWrongLink) {
  guard_.add_link("first");
  for (const char* const query : {"token=", "token=firs", "token=first1", "token=First", "token"}) {
    HttpServerRequest link = request("GET", "/");
    link.query = query;
    const std::optional<HttpReply> reply = guard_.check(link);
    EXPECT_FALSE(reply && reply->has_field("Set-Cookie")) << query;
  }
  HttpServerRequest posted = request("POST", "/");
  posted.query = "token=first";
  EXPECT_EQ(status_of(posted), 401);
}

TEST_F(BrowserGuardTest, KeepsAFewLinks) {
  for (int each = 0; each < 100; ++each) guard_.add_link("link" + std::to_string(each));
  int good = 0;
  for (int each = 0; each < 100; ++each) {
    HttpServerRequest link = request("GET", "/");
    link.query = "token=link" + std::to_string(each);
    good += guard_.check(link)->has_field("Set-Cookie") ? 1 : 0;
  }
  EXPECT_EQ(good, static_cast<int>(BrowserGuard::kMaxLinks));
}

TEST_F(BrowserGuardTest, SealsWhatItHandsOut) {
  HttpReply reply;
  BrowserGuard::seal(reply);
  const std::string head = head_text(reply, true);
  EXPECT_THAT(
      head, HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self'; style-src "
                      "'self'; img-src "
                      "'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
                      "form-action 'none'\r\n"));
  for (const char* const field :
       {"X-Content-Type-Options: nosniff\r\n", "Referrer-Policy: no-referrer\r\n",
        "Cache-Control: no-store\r\n", "Cross-Origin-Resource-Policy: same-origin\r\n",
        "Connection: keep-alive\r\n"}) {
    EXPECT_THAT(head, HasSubstr(field));
  }
  HttpReply kept{.fields = {{"Cache-Control", "no-cache"}}};
  BrowserGuard::seal(kept);
  EXPECT_THAT(head_text(kept, true), Not(HasSubstr("no-store")));
}

}  // namespace
}  // namespace disttf::net
