// Requests from arbitrary clients: which are accepted, which are refused with which status, and
// that nothing beyond the limits is stored.
#include "net/http/http_request.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace disttf::net {
namespace {

// Returns the status of a request that is fed in pieces; 0 with `out` filled if it is complete.
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

TEST(HttpRequest, HasWhatItAccepts) {
  constexpr std::string_view kAccepts =
      "GET / HTTP/1.1\r\nACCEPT: a/b;q=0.5,c/d\r\nHost: x\r\nX-Accept: e\r\n\r\n";
  for (std::size_t piece = 1; piece < kAccepts.size(); ++piece) {
    HttpServerRequest request;
    ASSERT_EQ(read(kAccepts, request, piece), 0) << piece;
    EXPECT_EQ(request.accept, "a/b;q=0.5,c/d") << piece;
  }
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

std::string chunked(const std::string& body, const std::string& coding = "chunked") {
  return "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: " + coding + "\r\n\r\n" + body;
}

TEST(HttpRequest, MayComeInChunks) {
  HttpServerRequest request;
  const std::vector<std::string> bodies = {
      "3\r\nabc\r\n0\r\n\r\n",
      "1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
      "003;name=value;\"q\"\r\nabc\r\n0;last\r\n\r\n",
      "3 ;name\r\nabc\r\n0\r\nX-Sum: 1\r\nContent-Length: 7\r\n\r\n",
  };
  for (const std::string& body : bodies) {
    for (std::size_t piece = 1; piece < 40; ++piece) {
      EXPECT_EQ(read(chunked(body), request, piece), 0) << body;
      EXPECT_EQ(request.body, "abc");
    }
  }
  EXPECT_EQ(read(chunked(bodies[0], "CHUNKED"), request), 0);
  EXPECT_EQ(read(chunked("A\r\n0123456789\r\n0\r\n\r\n"), request), 0);
  EXPECT_EQ(request.body, "0123456789");
}

TEST(HttpRequest, InChunksIsNotWholeBeforeTheLastByteAndLeavesWhatFollows) {
  const std::string text = chunked("3\r\nabc\r\n0\r\nX: y\r\n\r\n");
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_EQ(status_of(text.substr(0, size)), -1) << size;
  }
  HttpRequestParser parser;
  ASSERT_EQ(parser.feed(text + "GET /next"), 0);
  EXPECT_TRUE(parser.complete());
  EXPECT_EQ(parser.taken(), text.size());
  EXPECT_FALSE(parser.may_stay_open());
  parser.reset();
  ASSERT_EQ(parser.feed("GET /next HTTP/1.1\r\nHost: x\r\n\r\n"), 0);
  EXPECT_TRUE(parser.complete());
  EXPECT_EQ(parser.request().path, "/next");
}

TEST(HttpRequest, IsRefusedWhereSomeReadItsChunksOtherwise) {
  const std::vector<std::string> bodies = {
      "g\r\n",
      "-1\r\n",
      "0x3\r\nabc\r\n",
      "+3\r\nabc\r\n",
      " 3\r\nabc\r\n",
      "3 \r\nabc\r\n0\r\n\r\n",
      "3\nabc\n0\n\n",
      "3\r\nabc0\r\n\r\n",
      "3\r\nabcd\r\n0\r\n\r\n",
      "3\r\nabc\n\n0\r\n\r\n",
      "\r\n3\r\nabc\r\n0\r\n\r\n",
      ";name\r\n",
      "3;a\nb\r\nabc\r\n0\r\n\r\n",
      "0\r\nno field\r\n\r\n",
      "0\r\n folded: x\r\n\r\n",
      "0\r\nX: y\n\r\n",
      "00000000000000000003\r\nabc\r\n0\r\n\r\n",
  };
  for (const std::string& body : bodies) {
    EXPECT_EQ(status_of(chunked(body)), 400) << body;
  }
  const std::string both = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: ";
  EXPECT_EQ(status_of(both + "chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(status_of(both + "\r\n\r\nabc"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                      "Content-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
            400);
  const std::string whole = "3\r\nabc\r\n0\r\n\r\n";
  for (const std::string coding :
       {"identity", "gzip", "chunked, gzip", "chunked, chunked", "xchunked", "chunked;q=1", ""}) {
    EXPECT_EQ(status_of(chunked(whole, coding)), 400) << coding;
  }
  EXPECT_EQ(status_of(chunked(whole, "gzip, chunked")), 501);
  EXPECT_EQ(status_of(chunked(whole, "gzip\r\nTransfer-Encoding: chunked")), 501);
  EXPECT_EQ(status_of(chunked(whole, "chunked\r\nTransfer-Encoding: chunked")), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + whole),
            400);
}

TEST(HttpRequest, InChunksIsBoundedAsOneWithALengthIs) {
  HttpRequestParser parser(10);
  EXPECT_EQ(parser.feed(chunked("6\r\nabcdef\r\n5\r\n")), 413);
  HttpRequestParser huge(10);
  EXPECT_EQ(huge.feed(chunked("fffffffffffffff\r\n")), 413);
  HttpRequestParser exact(10);
  EXPECT_EQ(exact.feed(chunked("a\r\n0123456789\r\n0\r\n\r\n")), 0);
  EXPECT_TRUE(exact.complete());
  // The limit also covers extensions and trailers.
  HttpRequestParser extended;
  EXPECT_EQ(extended.feed(chunked("1;" + std::string(9000, 'x') + "\r\na\r\n0\r\n\r\n")), 400);
  std::string trailers;
  while (trailers.size() < 9000) trailers += "X: y\r\n";
  EXPECT_EQ(status_of(chunked("0\r\n" + trailers + "\r\n")), 400);
}

TEST(HttpRequest, IsRefusedWithFoldedFields) {
  constexpr std::string_view kFolded = "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n";
  for (std::size_t piece = 1; piece <= kFolded.size(); ++piece) {
    HttpServerRequest ignored;
    EXPECT_EQ(read(kFolded, ignored, piece), 400) << piece;
  }
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n\tTransfer-Encoding: chunked\r\n\r\n"),
            400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\n\r\n a\r\n b"), 0)
      << "what is no line of the head may begin as it likes";
}

// Some servers interpret each of these differently: what follows could be a request that another
// server accepted as a part of this one.
TEST(HttpRequest, IsRefusedWithLinesThatSomeReadOtherwise) {
  using std::string_view_literals::operator""sv;
  const std::vector<std::string_view> wrong = {
      "GET / HTTP/1.1\nHost: x\n\n"sv,
      "GET / HTTP/1.1\r\nHost: x\n\r\n"sv,
      "GET / HTTP/1.1\r\nHost: x\r\n\n"sv,
      "GET / HTTP/1.1\r\nHost: x\r\n\rX: y\r\n\r\n"sv,
      "GET / HTTP/1.1\rHost: x\r\n\r\n"sv,
      "GET / HTTP/1.1\r\nHost: x\r\nX: a\rY: b\r\n\r\n"sv,
      "GET / HTTP/1.1\r\nHost: x\r\nX: a\r\r\n\r\n"sv,
      "GET / HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n"sv,
      "GET / HTTP/1.1\r\nHost: x\r\nX: a\x7f\r\n\r\n"sv,
      "GET / HTTP/1.1\r\nHost : x\r\n\r\n"sv,
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length : 2\r\n\r\nab"sv,
      "GET / HTTP/1.1\r\n Host: x\r\n\r\n"sv,
      "GET / HTTP/1.1\r\nHost: x\r\nnothing\r\n\r\n"sv,
      "GET  / HTTP/1.1\r\nHost: x\r\n\r\n"sv,
      "GET /  HTTP/1.1\r\nHost: x\r\n\r\n"sv,
      "GET /\tHTTP/1.1\r\nHost: x\r\n\r\n"sv,
      "GET / HTTP/1.1 \r\nHost: x\r\n\r\n"sv,
      " GET / HTTP/1.1\r\nHost: x\r\n\r\n"sv,
      "GET /\r\n\r\n"sv,
  };
  for (const std::string_view text : wrong) {
    for (std::size_t piece = 1; piece <= text.size(); ++piece) {
      HttpServerRequest ignored;
      EXPECT_EQ(read(text, ignored, piece), 400) << text << piece;
    }
  }
}

TEST(HttpRequest, MayFollowEmptyLinesAndHaveBlanksAroundValues) {
  HttpServerRequest request;
  ASSERT_EQ(
      read("\r\n\r\nGET / HTTP/1.1\r\nHost:x\r\nX:\t\xc3\xa4 \r\nAccept:  b \r\n\r\n", request), 0);
  EXPECT_EQ(request.accept, "b");
}

TEST(HttpRequest, IsForOneHost) {
  for (const std::string host :
       {"x", "x:", "127.0.0.1:80", "[::1]:80", "[::1]", "a-b.c_d", "a%20b"}) {
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n"), 0) << host;
  }
  for (const std::string host : {"", "a b", "a/b", "a@b", "a,b", "http://a", ":80", "a:1:2", "a:b",
                                 "[::1", "[]", "[::1]80", "[["}) {
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n"), 400) << host;
  }
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);
  // Before the body arrives.
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n"), 400);
}

TEST(HttpRequest, IsRefusedWhereAFieldThatCountsComesTwice) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: x\r\nX: y\r\nHost: x\r\n\r\n"), 400);
  for (const std::string name : {"Origin", "Content-Type", "Authorization", "Last-Event-ID"}) {
    const std::string field = name + ": a\r\n";
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: x\r\n" + field + "\r\n"), 0) << name;
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: x\r\n" + field + "X: y\r\n" + field + "\r\n"), 400)
        << name;
  }
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: x\r\nX: y\r\nX: y\r\n\r\n"), 0);
}

TEST(HttpRequest, AListMayComeInSeveralFields) {
  HttpServerRequest request;
  EXPECT_EQ(read("GET / HTTP/1.1\r\nHost: x\r\nAccept: a\r\nCookie: b=1\r\nACCEPT: c \r\n"
                 "Cookie: d=2\r\nAccept-Encoding: br\r\nAccept-Encoding: gzip\r\n\r\n",
                 request),
            0);
  EXPECT_EQ(request.accept, "a, c");
  EXPECT_EQ(request.cookie, "b=1; d=2");
  EXPECT_EQ(request.accept_encoding, "br, gzip");
}

TEST(HttpRequest, MayNameItsServerInTheTarget) {
  HttpServerRequest request;
  EXPECT_EQ(read("GET http://a.example:80/v1/x?y=z HTTP/1.1\r\nHost: b\r\n\r\n", request), 0);
  EXPECT_EQ(request.path, "/v1/x");
  EXPECT_EQ(request.query, "y=z");
  EXPECT_EQ(request.host, "a.example:80");  // the target's host, not the field's
  EXPECT_EQ(read("GET HTTPS://[::1]:80?q HTTP/1.1\r\nHost: b\r\n\r\n", request), 0);
  EXPECT_EQ(request.path, "/");
  EXPECT_EQ(request.query, "q");
  EXPECT_EQ(request.host, "[::1]:80");
  for (const std::string target : {"http:///x", "http://u@a/x", "http://a,b/x", "ftp://a/x",
                                   "http://a/../x", "a/x", "http:/x"}) {
    EXPECT_EQ(status_of("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n"), 400) << target;
  }
  EXPECT_EQ(status_of("GET http://a/ HTTP/1.1\r\n\r\n"), 400);  // Host is missing all the same
  EXPECT_EQ(status_of("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"), 0);
}

TEST(HttpRequest, OffersOfOtherProtocolsAreIgnored) {
  HttpServerRequest request;
  const std::string offer =
      "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n";
  HttpRequestParser parser;
  ASSERT_EQ(parser.feed("GET /a HTTP/1.1\r\nHost: x\r\n" + offer + "\r\n"), 0);
  EXPECT_TRUE(parser.complete());
  EXPECT_TRUE(parser.may_stay_open());
  EXPECT_EQ(
      read("POST /a HTTP/1.1\r\nHost: x\r\n" + offer + "Content-Length: 3\r\n\r\nabc", request), 0);
  EXPECT_EQ(request.body, "abc");
  EXPECT_EQ(read("POST /a HTTP/1.1\r\nHost: x\r\n" + offer +
                     "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
                 request),
            0);
  EXPECT_EQ(request.body, "abc");
  EXPECT_EQ(
      status_of("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
      0);
}

TEST(HttpRequest, MayBeOfHttp10) {
  HttpRequestParser bare;
  ASSERT_EQ(bare.feed("GET / HTTP/1.0\r\n\r\n"), 0);
  EXPECT_TRUE(bare.complete());
  EXPECT_TRUE(bare.request().is_http10);
  EXPECT_FALSE(bare.may_stay_open());
  HttpRequestParser kept;
  ASSERT_EQ(kept.feed("POST / HTTP/1.0\r\nHost: x\r\nConnection: x, Keep-Alive\r\n"
                      "Content-Length: 2\r\nExpect: 100-continue\r\n\r\nab"),
            0);
  EXPECT_TRUE(kept.may_stay_open());
  EXPECT_EQ(kept.request().body, "ab");
  EXPECT_FALSE(kept.expects_continue());  // HTTP/1.0 has no 100
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\nHost: a,b\r\n\r\n"), 400);
}

TEST(HttpRequest, ExpectsToBeToldToContinueAndNothingElse) {
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: ";
  HttpRequestParser parser;
  ASSERT_EQ(parser.feed(head + "100-Continue\r\n\r\n"), 0);
  EXPECT_TRUE(parser.head_complete());
  EXPECT_TRUE(parser.expects_continue());
  EXPECT_EQ(status_of(head + "a miracle\r\n\r\n"), 417);
}

TEST(HttpRequest, ClosesWhereOneOfSeveralConnectionTokensSaysSo) {
  for (const std::string field :
       {"Connection: foo, close", "Connection: CLOSE", "Connection: foo\r\nConnection: close"}) {
    HttpRequestParser parser;
    ASSERT_EQ(parser.feed("GET / HTTP/1.1\r\nHost: x\r\n" + field + "\r\n\r\n"), 0);
    EXPECT_FALSE(parser.may_stay_open()) << field;
  }
}

TEST(HttpRequest, KeepsWhatABrowserSaysOfItself) {
  HttpServerRequest request;
  ASSERT_EQ(read("GET / HTTP/1.1\r\nHost: localhost:1\r\norigin: http://a\r\nCookie: b=c\r\n"
                 "Accept-Encoding: gzip\r\nIf-None-Match: \"d\"\r\nLast-Event-ID: 12\r\n\r\n",
                 request),
            0);
  EXPECT_EQ(request.host, "localhost:1");
  EXPECT_EQ(request.origin, "http://a");
  EXPECT_EQ(request.cookie, "b=c");
  EXPECT_EQ(request.accept_encoding, "gzip");
  EXPECT_EQ(request.if_none_match, "\"d\"");
  EXPECT_EQ(request.last_event_id, "12");
}

TEST(HttpRequest, HasAPathThatAllReadAlike) {
  for (const char* const path :
       {"/", "/v1/run", "/v1/pods/worker:1/restart", "/a/", "/.a/b..", "/..."}) {
    EXPECT_EQ(status_of("GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n\r\n"), 0) << path;
  }
  for (const char* const path :
       {"/x/../v1/run", "/x/%2e%2e/v1/run", "/x/%2E./v1/run", "/./v1", "//v1/run", "/v1//run",
        "/..", "/v1/..", "/%5c..%5cv1", "/a\\b", "/a%0d%0ab", "/a%7f", "/%2fv1"}) {
    EXPECT_EQ(status_of("GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n\r\n"), 400) << path;
  }
  HttpServerRequest request;
  ASSERT_EQ(read("GET /x/%252e%252e/v1 HTTP/1.1\r\nHost: x\r\n\r\n", request), 0);
  EXPECT_EQ(request.path, "/x/%2e%2e/v1") << "decoded once";
}

TEST(HttpRequest, IsNotMixedWithWhatFollowsIt) {
  HttpRequestParser whole;
  ASSERT_EQ(whole.feed(kUpdate), 0);
  EXPECT_TRUE(whole.complete() && whole.may_stay_open());
  HttpRequestParser more;
  ASSERT_EQ(more.feed(std::string(kUpdate) + "GET /"), 0);
  EXPECT_TRUE(more.complete());
  EXPECT_FALSE(more.may_stay_open());
  HttpRequestParser last;
  ASSERT_EQ(last.feed("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 0);
  EXPECT_FALSE(last.may_stay_open());
}

TEST(HttpRequest, IsRefusedWhereItIsNoHttp) {
  EXPECT_EQ(status_of("hello\r\n\r\n"), 501);
  EXPECT_EQ(status_of("HELLO / HTTP/1.1\r\nHost: x\r\n\r\n"), 501);
  EXPECT_EQ(status_of(std::string(8, '\0')), 400);
  EXPECT_EQ(status_of("\x16\x03\x01\x02"), 400);  // TLS
  EXPECT_EQ(status_of("GET * HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"), 400);
}

TEST(HttpRequest, IsRefusedInOtherVersions) {
  EXPECT_EQ(status_of("GET / HTTP/0.9\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(status_of("CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n"), 501);
}

TEST(HttpRequest, HasABoundedHead) {
  const std::string many(kMaxRequestHeadBytes, 'a');
  EXPECT_EQ(status_of("GET /" + many), 431);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: x\r\nX: " + many), 431);
  std::string fields = "GET / HTTP/1.1\r\nHost: x\r\n";
  for (std::size_t each = 0; each < kMaxRequestHeadBytes; ++each) fields += "ab: c\r\n";
  EXPECT_EQ(status_of(fields), 431);
}

TEST(HttpRequest, IsTooLongAtTheSameByteHoweverTheBytesAreCut) {
  const std::string start = "GET / HTTP/1.1\r\nHost: x\r\nX: ";
  const std::string value(kMaxRequestHeadBytes - start.size() - 4, 'a');
  EXPECT_EQ(status_of(start + value + "\r\n\r\n"), 0);
  // A syntax error after the limit does not matter: the limit takes precedence.
  const std::string name =
      "GET / HTTP/1.1\r\nHost: x\r\n" + std::string(kMaxRequestHeadBytes, 'a') + "(";
  for (const std::string& text : {start + value + "a\r\n\r\n", name}) {
    for (const std::size_t piece :
         {std::size_t{1}, std::size_t{7}, std::size_t{4096}, text.size()}) {
      HttpServerRequest ignored;
      EXPECT_EQ(read(text, ignored, piece), 431) << piece;
    }
  }
}

TEST(HttpRequest, HasABoundedBody) {
  const std::string allowed(kMaxRequestBodyBytes, 'a');
  HttpServerRequest request;
  ASSERT_EQ(read("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(allowed.size()) +
                     "\r\n\r\n" + allowed,
                 request),
            0);
  EXPECT_EQ(request.body, allowed);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                      std::to_string(allowed.size() + 1) + "\r\n\r\n"),
            413)
      << "refused before the body arrives";
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
  for (const int status :
       {200, 303, 304, 400, 401, 403, 404, 405, 408, 409, 413, 417, 421, 431, 501, 503, 505}) {
    EXPECT_NE(http_reason(status), "Internal Server Error") << status;
  }
  EXPECT_EQ(http_reason(500), "Internal Server Error");
}

TEST(HttpRequest, AParserThatIsResetReadsWhatFollows) {
  const std::string_view two =
      "POST /a HTTP/1.1\r\nHost: x\r\nContent-Type: x\r\nContent-Length: 2\r\n\r\nab"
      "GET /b?c HTTP/1.1\r\nHost: y\r\n\r\n";
  for (std::size_t cut = 0; cut <= two.size(); ++cut) {
    HttpRequestParser parser;
    std::vector<HttpServerRequest> requests;
    for (std::string_view piece : {two.substr(0, cut), two.substr(cut)}) {
      while (!piece.empty()) {
        ASSERT_EQ(parser.feed(piece), 0);
        piece.remove_prefix(parser.taken());
        if (parser.complete()) {
          EXPECT_TRUE(parser.may_be_followed());
          requests.push_back(parser.request());
          parser.reset();
        }
      }
    }
    ASSERT_EQ(requests.size(), 2U) << cut;
    EXPECT_EQ(requests[0].body, "ab");
    EXPECT_EQ(requests[0].content_type, "x");
    EXPECT_EQ(requests[1].path, "/b");
    EXPECT_EQ(requests[1].content_type, "");
    EXPECT_EQ(requests[1].body, "");
  }
}

TEST(HttpRequest, ABodyMayHaveAsMuchAsTheParserWasTold) {
  HttpRequestParser parser(3);
  EXPECT_EQ(parser.feed("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"), 413);
}

}  // namespace
}  // namespace disttf::net
