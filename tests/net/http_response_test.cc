#include "net/http/http_response.h"

#include <gtest/gtest.h>

#include <string>

namespace disttf::net {
namespace {

// Feeds text in pieces and stores the output.
class Reader {
 public:
  using Request = HttpResponseParser::Request;
  explicit Reader(Request request = Request::kGet) : parser(request) {}

  std::error_code feed(std::string_view text, std::size_t piece = std::string::npos) {
    while (!text.empty()) {
      const std::string_view now = text.substr(0, piece);
      text.remove_prefix(now.size());
      std::vector<std::span<const std::byte>> spans;
      if (const auto error = parser.feed(std::as_bytes(std::span(now)), spans)) return error;
      for (const auto span : spans) {
        body.append(reinterpret_cast<const char*>(span.data()), span.size());
      }
    }
    return {};
  }

  HttpResponseParser parser;
  std::string body;
};

constexpr std::string_view kChunked =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nTrailer: t\r\n\r\n";

TEST(HttpResponse, TakesTheHeadApart) {
  Reader reader;
  ASSERT_FALSE(
      reader.feed("HTTP/1.1 206 Partial Content\r\nCONTENT-length: 5\r\nContent-Range: "
                  "bytes 1-5/6\r\nAccept-Ranges:bytes\r\nX: y\r\n\r\n"));
  ASSERT_TRUE(reader.parser.head_complete());
  const HttpHead& head = reader.parser.head();
  EXPECT_EQ(head.status, 206);
  EXPECT_EQ(head.reason, "Partial Content");
  EXPECT_EQ(head.content_length, 5U);
  EXPECT_EQ(head.content_range, "bytes 1-5/6");
  EXPECT_EQ(head.accept_ranges, "bytes");
  EXPECT_EQ(head.location, "");
}

TEST(HttpResponse, BodyEndsWithItsLength) {
  Reader reader;
  ASSERT_FALSE(reader.feed("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef"));
  EXPECT_TRUE(reader.parser.complete());
  EXPECT_EQ(reader.body, "abc");
  EXPECT_EQ(reader.parser.excess_bytes(), 3U);
}

TEST(HttpResponse, IsTheSameHoweverTheBytesAreCut) {
  for (std::size_t piece = 1; piece <= kChunked.size(); ++piece) {
    Reader reader;
    ASSERT_FALSE(reader.feed(kChunked, piece)) << piece;
    EXPECT_TRUE(reader.parser.complete()) << piece;
    EXPECT_EQ(reader.body, "abcdefg") << piece;
    EXPECT_EQ(reader.parser.head().transfer_encoding, "chunked") << piece;
  }
}

TEST(HttpResponse, CutAnywhereIsNotComplete) {
  for (std::size_t size = 0; size < kChunked.size(); ++size) {
    Reader reader;
    ASSERT_FALSE(reader.feed(kChunked.substr(0, size))) << size;
    const std::error_code expected =
        reader.parser.head_complete() ? HttpError::kShortBody : HttpError::kBadResponse;
    EXPECT_EQ(reader.parser.finish(), expected) << size;
  }
}

TEST(HttpResponse, BodyWithoutLengthEndsWithTheConnection) {
  Reader reader;
  ASSERT_FALSE(reader.feed("HTTP/1.0 200 OK\r\n\r\nabc"));
  EXPECT_FALSE(reader.parser.complete());
  EXPECT_FALSE(reader.parser.finish());
  EXPECT_TRUE(reader.parser.complete());
  EXPECT_EQ(reader.body, "abc");
}

TEST(HttpResponse, PassesOverInterimResponses) {
  Reader reader;
  ASSERT_FALSE(
      reader.feed("HTTP/1.1 103 Early Hints\r\nLocation: /x\r\n\r\n"
                  "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"));
  EXPECT_EQ(reader.parser.head().status, 200);
  EXPECT_EQ(reader.parser.head().reason, "OK");
  EXPECT_EQ(reader.parser.head().location, "");
  EXPECT_TRUE(reader.parser.complete());
}

TEST(HttpResponse, EndlessInterimResponsesAreTooLarge) {
  Reader reader;
  std::error_code error;
  for (int i = 0; i < 10'000 && !error; ++i) error = reader.feed("HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(error, HttpError::kHeaderTooLarge);
}

TEST(HttpResponse, EndlessHeaderIsTooLarge) {
  Reader reader;
  std::error_code error = reader.feed("HTTP/1.1 200 OK\r\n");
  for (int i = 0; i < 10'000 && !error; ++i) error = reader.feed("X: 0123456789abcdef\r\n");
  EXPECT_EQ(error, HttpError::kHeaderTooLarge);
}

TEST(HttpResponse, JoinsAFieldThatCameTwice) {
  Reader reader;
  ASSERT_FALSE(reader.feed("HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\n\r\n"));
  EXPECT_EQ(reader.parser.head().location, "/a, /b");
}

TEST(HttpResponse, TunnelBeginsAfterTheAnswerToConnect) {
  Reader reader(Reader::Request::kConnect);
  ASSERT_FALSE(reader.feed("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nxy"));
  EXPECT_TRUE(reader.parser.complete());
  EXPECT_EQ(reader.body, "");
  EXPECT_EQ(reader.parser.excess_bytes(), 2U);
}

TEST(HttpResponse, RefusesWhatIsNoHttp1Response) {
  for (const char* text :
       {"SSH-2.0-OpenSSH_9.2\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 abc\r\n",
        "GET / HTTP/1.1\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"}) {
    EXPECT_EQ(Reader().feed(text), HttpError::kBadResponse) << text;
  }
}

TEST(ContentRange, ReadsAllForms) {
  EXPECT_EQ(read_content_range("bytes 1-5/6"), (ContentRange{.first = 1, .last = 5, .total = 6}));
  EXPECT_EQ(read_content_range("bytes 1-5/*"), (ContentRange{.first = 1, .last = 5, .total = {}}));
  EXPECT_EQ(read_content_range("bytes */6"), (ContentRange{.first = {}, .last = {}, .total = 6}));
}

TEST(ContentRange, RefusesEverythingElse) {
  for (const char* text : {"", "bytes", "bytes 1-5", "items 1-5/6", "bytes 5-1/6", "bytes 1-6/6",
                           "bytes -5/6", "bytes 1-/6", "bytes 1-5/", "bytes 1-5/x", "bytes 1-5/6 ",
                           "bytes 99999999999999999999-5/6"}) {
    EXPECT_EQ(read_content_range(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace disttf::net
