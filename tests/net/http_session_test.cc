// The client with a persistent connection, against a mirror on a real socket.
#include "net/http/http_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/mirror_server.h"

namespace disttf::net {
namespace {

using namespace std::chrono_literals;
using test_support::MirrorConnection;
using test_support::MirrorRequest;
using test_support::MirrorServer;
using testing::HasSubstr;

class HttpSessionTest : public testing::Test {
 protected:
  HttpAnswer ask(const std::string& method, const std::string& url, std::string_view body = {}) {
    return session_.ask({.method = method,
                         .url = parse_url("url", url),
                         .fields = {{"x-of-test", "yes"}},
                         .body = std::as_bytes(std::span(body.data(), body.size())),
                         .max_answer_bytes = 1000});
  }

  Interrupt interrupt_;
  HttpSession session_{{.connect_timeout = 5s, .stall_timeout = 2s}, "", {}, interrupt_};
};

TEST_F(HttpSessionTest, AsksAgainOverTheSameConnection) {
  std::atomic<int> connections = 0;
  const MirrorServer server([&](const MirrorRequest&, const MirrorConnection& connection) {
    ++connections;
    do {
      connection.respond("200 OK", "body", "ETag: \"x\"\r\nDate: now\r\n");
    } while (!connection.read_head().empty());
  });
  for (int i = 0; i < 3; ++i) {
    const HttpAnswer answer = ask("GET", server.url("/a"));
    EXPECT_FALSE(answer.error) << answer.sentence;
    EXPECT_EQ(answer.body, "body");
    EXPECT_EQ(answer.head.etag, "\"x\"");
    EXPECT_EQ(answer.head.date, "now");
  }
  EXPECT_EQ(connections, 1);
}

TEST_F(HttpSessionTest, AConnectionThatWasClosedMeanwhileIsOpenedAnew) {
  std::atomic<int> connections = 0;
  const MirrorServer server([&](const MirrorRequest&, const MirrorConnection& connection) {
    ++connections;
    connection.respond("200 OK", "body");  // then the mirror closes the connection
  });
  EXPECT_EQ(ask("GET", server.url()).body, "body");
  const HttpAnswer second = ask("GET", server.url());
  EXPECT_FALSE(second.error) << second.sentence;
  EXPECT_EQ(second.body, "body");
  EXPECT_EQ(connections, 2);
}

TEST_F(HttpSessionTest, AServerThatHangsUpAtOnceIsNotAskedForEver) {
  std::atomic<int> connections = 0;
  const MirrorServer server([&](const MirrorRequest&, const MirrorConnection&) { ++connections; });
  EXPECT_TRUE(ask("GET", server.url()).error);
  EXPECT_EQ(connections, 1);
}

TEST_F(HttpSessionTest, SendsMethodFieldsAndTheLengthOfTheBody) {
  const MirrorServer server([](const MirrorRequest&, const MirrorConnection& connection) {
    connection.respond("201 Created", "");
  });
  EXPECT_EQ(ask("PUT", server.url("/a?b=c"), "12345").head.status, 201);
  const MirrorRequest seen = server.requests().at(0);
  EXPECT_EQ(seen.method, "PUT");
  EXPECT_EQ(seen.target, "/a?b=c");
  EXPECT_EQ(seen.header("content-length"), "5");
  EXPECT_EQ(seen.header("x-of-test"), "yes");
  static_cast<void>(ask("PUT", server.url("/empty")));
  EXPECT_EQ(server.requests().at(1).header("content-length"), "0");
}

TEST_F(HttpSessionTest, AnAnswerToHeadHasNoBodyWhateverItSays) {
  const MirrorServer server([](const MirrorRequest&, const MirrorConnection& connection) {
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n");
    connection.wait_for_hangup();
  });
  const HttpAnswer answer = ask("HEAD", server.url());
  EXPECT_FALSE(answer.error) << answer.sentence;
  EXPECT_EQ(answer.head.content_length, 77U);
  EXPECT_EQ(answer.body, "");
}

TEST_F(HttpSessionTest, ARefusalIsAnAnswerWithItsBody) {
  const MirrorServer server([](const MirrorRequest&, const MirrorConnection& connection) {
    connection.respond("403 Forbidden", "why", "Retry-After: 3\r\n");
  });
  const HttpAnswer answer = ask("GET", server.url());
  EXPECT_FALSE(answer.error);
  EXPECT_EQ(answer.head.status, 403);
  EXPECT_EQ(answer.head.retry_after, "3");
  EXPECT_EQ(answer.body, "why");
}

// The server closes the connection while the client still sends.
TEST_F(HttpSessionTest, ARefusalThatComesBeforeTheWholeBodyIsAnAnswer) {
  const MirrorServer server([](const MirrorRequest&, const MirrorConnection& connection) {
    connection.respond("413 Too Large", "why");
  });
  const HttpAnswer answer = ask("PUT", server.url(), std::string(64'000'000, 'x'));
  EXPECT_FALSE(answer.error) << answer.sentence;
  EXPECT_EQ(answer.head.status, 413);
  EXPECT_EQ(answer.body, "why");
}

TEST_F(HttpSessionTest, ABodyThatBrokeOffOrIsTooLongIsRefused) {
  const MirrorServer broken([](const MirrorRequest&, const MirrorConnection& connection) {
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
  });
  const HttpAnswer cut = ask("GET", broken.url());
  EXPECT_EQ(cut.error, HttpError::kShortBody);
  EXPECT_THAT(cut.sentence, HasSubstr("closed after 3 bytes"));
  const MirrorServer large([](const MirrorRequest&, const MirrorConnection& connection) {
    connection.respond("200 OK", std::string(1001, 'x'));
  });
  EXPECT_EQ(ask("GET", large.url()).error, HttpError::kTooLarge);
}

TEST_F(HttpSessionTest, AServerThatSaysNothingIsGivenUp) {
  const MirrorServer server([](const MirrorRequest&, const MirrorConnection& connection) {
    connection.wait_for_hangup();
  });
  EXPECT_EQ(ask("GET", server.url()).error, HttpError::kStalled);
}

TEST_F(HttpSessionTest, AQuestionMayHaveMorePatienceThanOthers) {
  const HttpLimits hasty{.connect_timeout = 5s, .stall_timeout = 50ms};
  const MirrorServer mute([](const MirrorRequest&, const MirrorConnection& connection) {
    connection.wait_for_hangup();
  });
  HttpQuestion question{.url = parse_url("url", mute.url()), .fields = {}, .body = {}};
  // Waits until a client that asks now has timed out, which takes longer than any client already
  // waiting would have.
  const auto wait_for_the_hasty = [&, question] {
    EXPECT_EQ(HttpSession(hasty, "", {}, interrupt_).ask(question).error, HttpError::kStalled);
  };
  const MirrorServer server([&](const MirrorRequest&, const MirrorConnection& connection) {
    wait_for_the_hasty();
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nslow ");
    wait_for_the_hasty();
    connection.send("words");
  });
  question.url = parse_url("url", server.url());
  question.patience = 60s;
  EXPECT_EQ(HttpSession(hasty, "", {}, interrupt_).ask(question).body, "slow words");
}

TEST_F(HttpSessionTest, AnInterruptEndsIt) {
  const MirrorServer server([this](const MirrorRequest&, const MirrorConnection& connection) {
    interrupt_.interrupt();
    connection.wait_for_hangup();
  });
  EXPECT_EQ(ask("GET", server.url()).error, std::errc::operation_canceled);
}

}  // namespace
}  // namespace disttf::net
