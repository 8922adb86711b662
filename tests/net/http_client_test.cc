// The client against a mirror on a real socket. No test waits for time to pass: a tested time-out
// is short, and the server waits for the client to close the connection.
#include "net/http/http_client.h"

#include <gmock/gmock.h>

#include <chrono>
#include <string>

#include "tests/net/http_client_fixture.h"

namespace disttf::net {
namespace {

using namespace std::chrono_literals;
using test_support::MirrorConnection;
using test_support::MirrorRequest;
using test_support::MirrorServer;
using testing::AllOf;
using testing::HasSubstr;

TEST_F(HttpClientTest, DeliversTheBody) {
  const MirrorServer server(test_support::serve(files));
  const HttpOutcome outcome = get(server.url("/big"));
  EXPECT_FALSE(outcome.error) << outcome.sentence;
  EXPECT_EQ(outcome.stage, HttpStage::kDone);
  EXPECT_EQ(outcome.received_bytes, 300'000U);
  EXPECT_EQ(sink.body, files.at("/big"));
  EXPECT_EQ(sink.info.total_bytes, 300'000U);
  EXPECT_TRUE(sink.info.accepts_ranges);
}

TEST_F(HttpClientTest, AsksForHostAndIdentityEncoding) {
  const MirrorServer server(test_support::serve(files));
  static_cast<void>(get(server));
  const MirrorRequest seen = server.requests().at(0);
  EXPECT_EQ(seen.target, "/a");
  EXPECT_EQ(seen.header("host"), "127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(seen.header("accept-encoding"), "identity");
  EXPECT_EQ(seen.header("range"), "");
}

TEST_F(HttpClientTest, NeedsNoResolverForLocalhost) {
  const MirrorServer server(test_support::serve(files));
  EXPECT_FALSE(get(server.url("/a", "localhost")).error);
}

TEST_F(HttpClientTest, ReadsChunks) {
  const HttpOutcome outcome = get_raw(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_FALSE(outcome.error) << outcome.sentence;
  EXPECT_EQ(sink.body, "abcde");
}

TEST_F(HttpClientTest, ReadsUntilTheConnectionEndsWhenNoLengthIsGiven) {
  const HttpOutcome outcome = get_raw("HTTP/1.0 200 OK\r\n\r\nabc");
  EXPECT_FALSE(outcome.error) << outcome.sentence;
  EXPECT_EQ(sink.body, "abc");
}

TEST_F(HttpClientTest, ReportsABodyThatBrokeOff) {
  const MirrorServer server(test_support::break_after(files, 4));
  const HttpOutcome outcome = get(server);
  EXPECT_EQ(outcome.error, HttpError::kShortBody);
  EXPECT_EQ(outcome.stage, HttpStage::kBody);
  EXPECT_EQ(outcome.received_bytes, 4U);
  EXPECT_THAT(outcome.sentence, HasSubstr("closed after 4 of 10 bytes"));
}

TEST_F(HttpClientTest, ReportsChunksThatBrokeOff) {
  const HttpOutcome outcome =
      get_raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  EXPECT_EQ(outcome.error, HttpError::kShortBody);
  EXPECT_EQ(outcome.received_bytes, 3U);
}

TEST_F(HttpClientTest, AStallIsCutOff) {
  const MirrorServer server(test_support::stall_after(files, 4));
  request.stall_timeout = 300ms;  // long enough for the header on a busy machine
  const HttpOutcome outcome = get(server);
  EXPECT_EQ(outcome.error, HttpError::kStalled);
  EXPECT_EQ(outcome.stage, HttpStage::kBody);
  EXPECT_THAT(outcome.sentence, AllOf(HasSubstr("after 4 of 10 bytes"), HasSubstr("300 ms")));
}

TEST_F(HttpClientTest, AServerThatNeverAnswersIsCutOff) {
  const MirrorServer server([](const MirrorRequest&, const MirrorConnection& connection) {
    connection.wait_for_hangup();
  });
  request.stall_timeout = 50ms;
  const HttpOutcome outcome = get(server);
  EXPECT_EQ(outcome.error, HttpError::kStalled);
  EXPECT_EQ(outcome.stage, HttpStage::kResponse);
}

// Each byte arrives in time, but the file never would.
TEST_F(HttpClientTest, ADripIsAStall) {
  const MirrorServer server([](const MirrorRequest&, const MirrorConnection& connection) {
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    while (connection.send("x") && !connection.hangs_up_within(1ms)) {
    }
  });
  request.stall_timeout = 100ms;
  EXPECT_EQ(get(server).error, HttpError::kStalled);
}

TEST_F(HttpClientTest, TheDeadlineEndsATransferThatIsAlive) {
  const MirrorServer server(test_support::stall_after(files, 4));
  request.deadline = Clock::now() + 50ms;
  const HttpOutcome outcome = get(server);
  EXPECT_EQ(outcome.error, std::errc::timed_out);
  EXPECT_THAT(outcome.sentence, HasSubstr("no time is left"));
}

TEST_F(HttpClientTest, TheInterruptEndsATransfer) {
  const MirrorServer server([this](const MirrorRequest&, const MirrorConnection& connection) {
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123");
    interrupt.interrupt();
    connection.wait_for_hangup();
  });
  const HttpOutcome outcome = get(server);
  EXPECT_EQ(outcome.error, std::errc::operation_canceled);
  EXPECT_THAT(outcome.sentence, HasSubstr("was interrupted"));
}

TEST_F(HttpClientTest, NothingIsSentOnceInterrupted) {
  const MirrorServer server(test_support::serve(files));
  interrupt.interrupt();
  EXPECT_EQ(get(server).error, std::errc::operation_canceled);
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(HttpClientTest, ARefusedConnectionSaysWhere) {
  std::uint16_t port = 0;
  {
    const MirrorServer gone(test_support::serve(files));
    port = gone.port();
  }
  const HttpOutcome outcome = get("http://127.0.0.1:" + std::to_string(port) + "/a");
  EXPECT_EQ(outcome.error, std::errc::connection_refused);
  EXPECT_EQ(outcome.stage, HttpStage::kConnect);
  EXPECT_EQ(outcome.sentence, "http://127.0.0.1:" + std::to_string(port) +
                                  "/a: connecting to 127.0.0.1 port " + std::to_string(port) +
                                  " failed: Connection refused");
}

TEST_F(HttpClientTest, AnErrorStatusIsNamed) {
  const MirrorServer server(test_support::answer_not_found());
  const HttpOutcome outcome = get(server);
  EXPECT_EQ(outcome.error, HttpError::kBadStatus);
  EXPECT_EQ(outcome.stage, HttpStage::kResponse);
  EXPECT_THAT(outcome.sentence, HasSubstr("the server answered 404 (Not Found)"));
}

TEST_F(HttpClientTest, AnErrorStatusWithLineNoiseStaysOneLine) {
  const HttpOutcome outcome = get_raw("HTTP/1.1 500 \x1b[31mred\r\n\r\n");
  EXPECT_EQ(outcome.sentence.find('\x1b'), std::string::npos);
}

TEST_F(HttpClientTest, ATransferOfOtherBytesThanHttpIsRefused) {
  const HttpOutcome outcome = get_raw("SSH-2.0-OpenSSH_9.2\r\n");
  EXPECT_EQ(outcome.error, HttpError::kBadResponse);
  EXPECT_THAT(outcome.sentence, HasSubstr("\"SSH-2.0-OpenSSH_9.2"));
}

TEST_F(HttpClientTest, AHangUpWithoutAWordIsReported) {
  EXPECT_THAT(get_raw("").sentence, HasSubstr("closed without a response"));
}

TEST_F(HttpClientTest, AnEndlessHeaderIsRefused) {
  const MirrorServer server([](const MirrorRequest&, const MirrorConnection& connection) {
    connection.send("HTTP/1.1 200 OK\r\n");
    while (connection.send("X: 0123456789abcdef\r\n")) {
    }
  });
  EXPECT_EQ(get(server).error, HttpError::kHeaderTooLarge);
}

TEST_F(HttpClientTest, AContentEncodingIsRefused) {
  const HttpOutcome outcome =
      get_raw("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_EQ(outcome.error, HttpError::kEncodedBody);
  EXPECT_THAT(outcome.sentence, HasSubstr("Content-Encoding \"gzip\""));
  EXPECT_EQ(sink.body, "");
}

TEST_F(HttpClientTest, ATransferEncodingButChunkedIsRefused) {
  EXPECT_EQ(get_raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc").error,
            HttpError::kEncodedBody);
}

TEST_F(HttpClientTest, AnAnnouncedBodyOverTheLimitIsRefusedUnread) {
  const MirrorServer server(test_support::serve(files));
  request.max_bytes = 9;
  EXPECT_EQ(get(server).error, HttpError::kTooLarge);
  EXPECT_EQ(sink.body, "");
}

TEST_F(HttpClientTest, AnUnannouncedBodyIsCutOffAtTheLimit) {
  const MirrorServer server([](const MirrorRequest&, const MirrorConnection& connection) {
    connection.send("HTTP/1.0 200 OK\r\n\r\n");
    const std::string text(4096, 'x');
    while (connection.send(text)) {
    }
  });
  request.max_bytes = 100'000;
  EXPECT_EQ(get(server).error, HttpError::kTooLarge);
  EXPECT_LE(sink.body.size(), 100'000U);
}

TEST_F(HttpClientTest, BytesBeyondTheAnnouncedLengthAreLeftAlone) {
  const HttpOutcome outcome = get_raw("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef");
  EXPECT_FALSE(outcome.error) << outcome.sentence;
  EXPECT_EQ(sink.body, "abc");
}

TEST_F(HttpClientTest, TheSinksRefusalIsTheOutcome) {
  const MirrorServer server(test_support::serve(files));
  sink.refuse_after = 5;
  const HttpOutcome outcome = get(server);
  EXPECT_EQ(outcome.error, std::errc::no_space_on_device);
  EXPECT_EQ(outcome.stage, HttpStage::kBody);
}

// --- Ranges ---

TEST_F(HttpClientTest, ResumesWhereTheCallerIs) {
  const MirrorServer server(test_support::serve(files));
  request.resume_from = 4;
  const HttpOutcome outcome = get(server);
  EXPECT_FALSE(outcome.error) << outcome.sentence;
  EXPECT_EQ(server.requests().at(0).header("range"), "bytes=4-");
  EXPECT_EQ(sink.info.offset, 4U);
  EXPECT_EQ(sink.info.total_bytes, 10U);
  EXPECT_EQ(sink.body, "456789");
}

TEST_F(HttpClientTest, StartsOverWhereTheServerKnowsNoRanges) {
  const MirrorServer server(test_support::serve_without_ranges(files));
  request.resume_from = 4;
  EXPECT_FALSE(get(server).error);
  EXPECT_EQ(sink.info.offset, 0U);
  EXPECT_EQ(sink.body, "0123456789");
}

TEST_F(HttpClientTest, ARangeBeyondTheEndIsNotSatisfiable) {
  const MirrorServer server(test_support::serve(files));
  request.resume_from = 10;
  const HttpOutcome outcome = get(server);
  EXPECT_EQ(outcome.error, HttpError::kRangeNotSatisfiable);
  EXPECT_THAT(outcome.sentence, HasSubstr("no bytes from 10 on"));
}

TEST_F(HttpClientTest, AnotherRangeThanAskedForIsRefused) {
  request.resume_from = 4;
  for (const char* range : {"bytes 3-9/10", "bytes 4-8/10", "bytes */10", "4-9/10", ""}) {
    const HttpOutcome outcome = get_raw(
        "HTTP/1.1 206 Partial Content\r\nContent-Range: " + std::string(range) + "\r\n\r\n456789");
    EXPECT_EQ(outcome.error, HttpError::kBadRange) << range;
  }
  EXPECT_EQ(sink.body, "");
}

TEST_F(HttpClientTest, ARangeThatContradictsItsLengthIsRefused) {
  request.resume_from = 4;
  EXPECT_EQ(get_raw("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 4-9/10\r\n"
                    "Content-Length: 5\r\n\r\n45678")
                .error,
            HttpError::kBadRange);
}

TEST_F(HttpClientTest, AnUnrequestedRangeIsRefused) {
  EXPECT_EQ(get_raw("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/10\r\n\r\n").error,
            HttpError::kBadRange);
}

// --- Redirects ---

TEST_F(HttpClientTest, FollowsEveryKindOfRedirect) {
  for (const char* status : {"301 Moved", "302 Found", "303 See Other", "307 T", "308 P"}) {
    const MirrorServer server(test_support::first_then(1, test_support::redirect(status, "/a"),
                                                       test_support::serve(files)));
    sink.body.clear();
    EXPECT_FALSE(get(server.url("/old")).error) << status;
    EXPECT_EQ(sink.body, "0123456789") << status;
  }
}

TEST_F(HttpClientTest, FollowsARelativeRedirect) {
  const MirrorServer server(test_support::first_then(1, test_support::redirect("302 Found", "../a"),
                                                     test_support::serve(files)));
  EXPECT_FALSE(get(server.url("/x/y")).error);
  EXPECT_EQ(server.requests().at(1).target, "/a");
}

TEST_F(HttpClientTest, FollowsARedirectToAnotherServer) {
  const MirrorServer there(test_support::serve(files));
  const MirrorServer here(test_support::redirect("302 Found", there.url("/a")));
  request.resume_from = 4;
  EXPECT_FALSE(get(here).error);
  EXPECT_EQ(sink.body, "456789");
}

TEST_F(HttpClientTest, ACircleIsNoticed) {
  const MirrorServer server(test_support::redirect("302 Found", "/a"));
  const HttpOutcome outcome = get(server.url("/b"));
  EXPECT_EQ(outcome.error, HttpError::kTooManyRedirects);
  EXPECT_THAT(outcome.sentence, HasSubstr("redirects in a circle, back to \"" + server.url("/a")));
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(HttpClientTest, RedirectsWithoutEndAreGivenUp) {
  const MirrorServer server([](const MirrorRequest& seen, const MirrorConnection& connection) {
    connection.respond("302 Found", "", "Location: " + seen.target + "x\r\n");
  });
  const HttpOutcome outcome = get(server);
  EXPECT_EQ(outcome.error, HttpError::kTooManyRedirects);
  EXPECT_EQ(server.requests().size(), 6U);
}

TEST_F(HttpClientTest, ARedirectMustLeadSomewhere) {
  EXPECT_EQ(get_raw("HTTP/1.1 302 Found\r\n\r\n").error, HttpError::kBadRedirect);
  const HttpOutcome outcome = get_raw("HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n");
  EXPECT_EQ(outcome.error, HttpError::kBadRedirect);
  EXPECT_THAT(outcome.sentence, HasSubstr("\"file:///etc/passwd\""));
}

TEST_F(HttpClientTest, NamesTheFirstUrlWhenARedirectFails) {
  const MirrorServer there(test_support::answer_not_found());
  const MirrorServer here(test_support::redirect("302 Found", there.url("/x")));
  EXPECT_THAT(get(here).sentence,
              HasSubstr(there.url("/x") + " (redirected from " + here.url("/a") + "): the server"));
}

// --- Proxies ---

TEST_F(HttpClientTest, AsksAProxyInAbsoluteForm) {
  const MirrorServer proxy(
      test_support::proxy([](const MirrorRequest&, const MirrorConnection& connection) {
        connection.respond("200 OK", "via proxy");
      }));
  request.proxy.http_proxy = "http://me:pw@127.0.0.1:" + std::to_string(proxy.port());
  const HttpOutcome outcome = get("http://mirror.invalid/a?b");
  EXPECT_FALSE(outcome.error) << outcome.sentence;
  EXPECT_EQ(sink.body, "via proxy");
  const MirrorRequest seen = proxy.requests().at(0);
  EXPECT_EQ(seen.target, "http://mirror.invalid/a?b");
  EXPECT_EQ(seen.header("host"), "mirror.invalid");
  EXPECT_EQ(seen.header("proxy-authorization"), "Basic bWU6cHc=");
}

TEST_F(HttpClientTest, GoesDirectlyWhereNoProxySaysSo) {
  const MirrorServer server(test_support::serve(files));
  request.proxy = {.http_proxy = "http://127.0.0.1:1", .no_proxy = "127.0.0.1"};
  EXPECT_FALSE(get(server).error);
}

// --- Error codes ---

TEST(HttpErrorCategory, EveryCodeHasAMessage) {
  for (int code = 1; code <= static_cast<int>(HttpError::kBadCertificate); ++code) {
    EXPECT_EQ(http_category().message(code).find("unknown"), std::string::npos) << code;
  }
  EXPECT_EQ(http_category().message(99), "unknown http error 99");
}

}  // namespace
}  // namespace disttf::net
