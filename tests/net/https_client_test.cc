// The client over TLS, against a mirror with a certificate that the test creates.
#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "net/http/http_session.h"
#include "tests/net/http_client_fixture.h"
#include "tests/support/mirror_server.h"

namespace disttf::net {
namespace {

using namespace std::chrono_literals;
using test_support::MirrorConnection;
using test_support::MirrorRequest;
using test_support::MirrorServer;
using testing::AllOf;
using testing::HasSubstr;

class HttpsClientTest : public HttpClientTest {
 protected:
  HttpsClientTest() {
    ca_path_ = testing::TempDir() + "/disttf_ca_" + std::to_string(getpid()) + ".pem";
    authority_.write_certificate(ca_path_);
    request.ca_file = ca_path_;
  }
  ~HttpsClientTest() override { std::filesystem::remove(ca_path_); }

  test_support::TestAuthority authority_;
  std::string ca_path_;
};

TEST_F(HttpsClientTest, DeliversTheBody) {
  const MirrorServer server(test_support::serve(files), authority_.issue("DNS:localhost"));
  const HttpOutcome outcome = get(server.url("/big", "localhost"));
  EXPECT_FALSE(outcome.error) << outcome.sentence;
  EXPECT_EQ(sink.body, files.at("/big"));
}

TEST_F(HttpsClientTest, AcceptsAnAddressThatTheCertificateCarries) {
  const MirrorServer server(test_support::serve(files), authority_.issue("IP:127.0.0.1"));
  const HttpOutcome outcome = get(server);
  EXPECT_FALSE(outcome.error) << outcome.sentence;
}

TEST_F(HttpsClientTest, RefusesACertificateForAnotherHost) {
  const MirrorServer server(test_support::serve(files), authority_.issue("DNS:mirror.example"));
  const HttpOutcome outcome = get(server.url("/a", "localhost"));
  EXPECT_EQ(outcome.error, HttpError::kBadCertificate);
  EXPECT_EQ(outcome.stage, HttpStage::kConnect);
  EXPECT_THAT(outcome.sentence, AllOf(HasSubstr("localhost"), HasSubstr("ostname mismatch")));
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(HttpsClientTest, RefusesACertificateForAnotherAddress) {
  const MirrorServer server(test_support::serve(files), authority_.issue("IP:10.0.0.1"));
  EXPECT_EQ(get(server).error, HttpError::kBadCertificate);
}

TEST_F(HttpsClientTest, RefusesACertificateOfAnUnknownAuthority) {
  const test_support::TestAuthority other;
  const MirrorServer server(test_support::serve(files), other.issue("DNS:localhost"));
  const HttpOutcome outcome = get(server.url("/a", "localhost"));
  EXPECT_EQ(outcome.error, HttpError::kBadCertificate);
  EXPECT_TRUE(server.requests().empty());
}

// (OpenSSL at its default security level refuses it as well; this is a second check.)
TEST_F(HttpsClientTest, RefusesOldTls) {
  test_support::OpenSsl<SSL_CTX> old = authority_.issue("DNS:localhost");
  SSL_CTX_set_security_level(old.get(), 0);
  SSL_CTX_set_max_proto_version(old.get(), TLS1_1_VERSION);
  const MirrorServer server(test_support::serve(files), std::move(old));
  EXPECT_TRUE(get(server.url("/a", "localhost")).error);
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(HttpsClientTest, SaysWhenTheCaFileIsMissing) {
  const MirrorServer server(test_support::serve(files), authority_.issue("DNS:localhost"));
  request.ca_file = ca_path_ + ".none";
  const HttpOutcome outcome = get(server.url("/a", "localhost"));
  EXPECT_EQ(outcome.error, HttpError::kBadCaFile);
  EXPECT_THAT(outcome.sentence, HasSubstr("--ca_file"));
}

TEST_F(HttpsClientTest, SaysWhenTheCaFileHoldsNoCertificate) {
  const MirrorServer server(test_support::serve(files), authority_.issue("DNS:localhost"));
  std::ofstream(ca_path_) << "not a certificate\n";
  EXPECT_EQ(get(server.url("/a", "localhost")).error, HttpError::kBadCaFile);
}

TEST_F(HttpsClientTest, AServerThatSpeaksNoTlsIsAConnectTimeout) {
  const MirrorServer server([](const MirrorRequest&, const MirrorConnection&) {});
  request.connect_timeout = 50ms;
  const HttpOutcome outcome = get("https://localhost:" + std::to_string(server.port()) + "/a");
  EXPECT_EQ(outcome.error, HttpError::kConnectTimeout);
  EXPECT_EQ(outcome.stage, HttpStage::kConnect);
}

// A close without close_notify may come from an attacker in the middle: a body without a length is
// then incomplete.
TEST_F(HttpsClientTest, AnUnannouncedEndIsAShortBody) {
  test_support::OpenSsl<SSL_CTX> identity = authority_.issue("DNS:localhost");
  SSL_CTX_set_quiet_shutdown(identity.get(), 1);  // sends no close_notify
  const MirrorServer server(
      [](const MirrorRequest&, const MirrorConnection& connection) {
        connection.send("HTTP/1.0 200 OK\r\n\r\nabc");
      },
      std::move(identity));
  EXPECT_EQ(get(server.url("/a", "localhost")).error, HttpError::kShortBody);
}

TEST_F(HttpsClientTest, AStallIsCutOff) {
  const MirrorServer server(test_support::stall_after(files, 4), authority_.issue("DNS:localhost"));
  request.stall_timeout = 50ms;
  EXPECT_EQ(get(server.url("/a", "localhost")).error, HttpError::kStalled);
}

TEST_F(HttpsClientTest, FollowsARedirectFromHttp) {
  const MirrorServer there(test_support::serve(files), authority_.issue("DNS:localhost"));
  const MirrorServer here(test_support::redirect("302 Found", there.url("/a", "localhost")));
  EXPECT_FALSE(get(here).error);
  EXPECT_EQ(sink.body, "0123456789");
}

TEST_F(HttpsClientTest, RefusesARedirectToHttp) {
  const MirrorServer there(test_support::serve(files));
  const MirrorServer here(test_support::redirect("302 Found", there.url("/a")),
                          authority_.issue("DNS:localhost"));
  const HttpOutcome outcome = get(here.url("/a", "localhost"));
  EXPECT_EQ(outcome.error, HttpError::kInsecureRedirect);
  EXPECT_TRUE(there.requests().empty());
}

// --- Through a proxy ---

TEST_F(HttpsClientTest, TunnelsThroughAProxy) {
  const MirrorServer server(test_support::serve(files), authority_.issue("DNS:mirror.invalid"));
  const MirrorServer proxy(test_support::proxy(test_support::answer_not_found()));
  request.proxy.https_proxy = "me:pw@127.0.0.1:" + std::to_string(proxy.port());
  const HttpOutcome outcome = get(server.url("/a", "mirror.invalid"));
  EXPECT_FALSE(outcome.error) << outcome.sentence;
  EXPECT_EQ(sink.body, "0123456789");
  EXPECT_EQ(proxy.requests().at(0).method, "CONNECT");
  EXPECT_EQ(proxy.requests().at(0).target, "mirror.invalid:" + std::to_string(server.port()));
  EXPECT_EQ(proxy.requests().at(0).header("proxy-authorization"), "Basic bWU6cHc=");
  // The password is for the proxy and must not reach the server.
  EXPECT_EQ(server.requests().at(0).header("proxy-authorization"), "");
}

TEST_F(HttpsClientTest, SaysWhenTheProxyRefusesTheTunnel) {
  const MirrorServer proxy([](const MirrorRequest&, const MirrorConnection& connection) {
    connection.respond("407 Proxy Authentication Required", "");
  });
  request.proxy.https_proxy = "127.0.0.1:" + std::to_string(proxy.port());
  const HttpOutcome outcome = get("https://mirror.invalid/a");
  EXPECT_EQ(outcome.error, HttpError::kProxyRefused);
  EXPECT_EQ(outcome.stage, HttpStage::kConnect);
  EXPECT_THAT(outcome.sentence, HasSubstr("407 (Proxy Authentication Required)"));
}

TEST_F(HttpsClientTest, AProxyThatStallsIsAConnectTimeout) {
  const MirrorServer proxy([](const MirrorRequest&, const MirrorConnection& connection) {
    connection.wait_for_hangup();
  });
  request.proxy.https_proxy = "127.0.0.1:" + std::to_string(proxy.port());
  request.connect_timeout = 50ms;
  const HttpOutcome outcome = get("https://mirror.invalid/a");
  EXPECT_TRUE(outcome.error);
  EXPECT_EQ(outcome.stage, HttpStage::kConnect);
}

// The client with a persistent connection, against a mirror on a real socket.

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
