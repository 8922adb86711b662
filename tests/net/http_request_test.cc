// Requests as anybody may send them: what is taken, what is refused with which status, and that
// nothing is kept beyond the limits.
#include "net/http/http_request.h"

#include <gtest/gtest.h>

#include <string>

namespace disttf::net {
namespace {

// The status of a request that is fed in pieces; 0 and `out` when it is whole.
int read(std::string_view text, HttpServerRequest& out, std::size_t piece = std::string::npos) {
  HttpRequestParser parser;
  while (!text.empty()) {
    const std::string_view now = text.substr(0, piece);
    text.remove_prefix(now.size());
    if (const int status = parser.feed(now); status != 0) return status;
  }
  if (!parser.complete()) return -1;
  out = parser.request();
  return 0;
}

int status_of(std::string_view text) {
  HttpServerRequest ignored;
  return read(text, ignored);
}

constexpr std::string_view kUpdate =
    "POST /v1/pods/worker%3a1?now=true HTTP/1.1\r\nHost: x\r\nAUTHORIZATION: Bearer abc\r\n"
    "Content-Length: 5\r\n\r\n{\"a\"}";

TEST(HttpRequest, IsTakenApart) {
  HttpServerRequest request;
  ASSERT_EQ(read("POST /v1/pods/worker%3a1?now=true HTTP/1.1\r\nHost: x\r\nAUTHORIZATION: Bearer "
                 "abc\r\nContent-Length: 5\r\n\r\n{\"a\"}GET / HTTP/1.1\r\n",
                 request),
            0);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/v1/pods/worker:1");
  EXPECT_EQ(request.query, "now=true");
  EXPECT_EQ(request.authorization, "Bearer abc");
  EXPECT_EQ(request.body, "{\"a\"}");
}

TEST(HttpRequest, IsTheSameHoweverTheBytesAreCut) {
  for (std::size_t piece = 1; piece < kUpdate.size(); ++piece) {
    HttpServerRequest request;
    ASSERT_EQ(read(kUpdate, request, piece), 0) << piece;
    EXPECT_EQ(request.path, "/v1/pods/worker:1") << piece;
    EXPECT_EQ(request.authorization, "Bearer abc") << piece;
    EXPECT_EQ(request.body, "{\"a\"}") << piece;
  }
}

TEST(HttpRequest, IsNotWholeBeforeItsLastByte) {
  for (std::size_t size = 0; size < kUpdate.size(); ++size) {
    EXPECT_EQ(status_of(kUpdate.substr(0, size)), -1) << size;
  }
}

TEST(HttpRequest, MayBeChunked) {
  HttpServerRequest request;
  ASSERT_EQ(read("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n"
                 "Authorization: Bearer trailer\r\n\r\n",
                 request),
            0);
  EXPECT_EQ(request.body, "abcde");
  EXPECT_EQ(request.authorization, "") << "a trailer is no head";
}

TEST(HttpRequest, IsRefusedWhereItIsNoHttp) {
  EXPECT_EQ(status_of("hello\r\n\r\n"), 400);
  EXPECT_EQ(status_of(std::string(8, '\0')), 400);
  EXPECT_EQ(status_of("\x16\x03\x01\x02"), 400);  // TLS
  EXPECT_EQ(status_of("GET * HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET http://127.0.0.1/ HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /%zz HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400);
}

TEST(HttpRequest, IsRefusedInOtherVersions) {
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(status_of("CONNECT a:1 HTTP/1.1\r\n\r\n"), 501);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"), 501);
}

TEST(HttpRequest, HasABoundedHead) {
  const std::string many(kMaxRequestHeadBytes, 'a');
  EXPECT_EQ(status_of("GET /" + many), 431);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nX: " + many), 431);
  std::string fields = "GET / HTTP/1.1\r\n";
  for (std::size_t each = 0; each < kMaxRequestHeadBytes; ++each) fields += "ab: c\r\n";
  EXPECT_EQ(status_of(fields), 431);
}

TEST(HttpRequest, HasABoundedBody) {
  const std::string allowed(kMaxRequestBodyBytes, 'a');
  HttpServerRequest request;
  ASSERT_EQ(read("POST / HTTP/1.1\r\nContent-Length: " + std::to_string(allowed.size()) +
                     "\r\n\r\n" + allowed,
                 request),
            0);
  EXPECT_EQ(request.body, allowed);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: " + std::to_string(allowed.size() + 1) +
                      "\r\n\r\n"),
            413)
      << "refused before a byte of it has come";
  EXPECT_EQ(
      status_of("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n40001\r\n" + allowed + "b"),
      413);
}

TEST(HttpRequest, DecodesPercentSigns) {
  std::string text = "%41b%7A";
  EXPECT_TRUE(decode_percent(text));
  EXPECT_EQ(text, "Abz");
  for (std::string wrong : {"%", "%4", "%4g", "%00", "a%"}) {
    const std::string before = wrong;
    EXPECT_FALSE(decode_percent(wrong)) << before;
    EXPECT_EQ(wrong, before);
  }
}

TEST(HttpRequest, EveryStatusHasAReason) {
  for (const int status : {200, 400, 401, 404, 405, 408, 409, 413, 431, 501, 503, 505}) {
    EXPECT_NE(http_reason(status), "Internal Server Error") << status;
  }
  EXPECT_EQ(http_reason(500), "Internal Server Error");
}

}  // namespace
}  // namespace disttf::net
