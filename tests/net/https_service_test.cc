// The server for services over https. http_service_test.cc covers the requests and answers; this
// file covers their transport over TLS, whose records have other boundaries than requests, and the
// server's certificate.
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>

#include "tests/net/service_fixture.h"

namespace disttf::net {
namespace {

using std::chrono::milliseconds;
using test::RawClient;
using test::TlsClient;
using testing::HasSubstr;
using testing::StartsWith;

class HttpsServiceTest : public test::ServiceTest {
 protected:
  void serve_https(const HttpServiceOptions& options = {}, const std::string& kind = "p256",
                   std::size_t max_connections = 4096) {
    serve(options, {.max_connections = max_connections,
                    .identity = identity(kind + "/server.pem", kind + "/server.key")});
  }
  [[nodiscard]] bool speaks(const std::string& kind, const std::string& cipher) const {
    return TlsClient(port_, at(kind + "/ca.pem"), TLS1_2_VERSION, cipher).is_connected();
  }
  void expect_new_ciphers_alone(const std::string& kind, const std::string& signs) const {
    for (const char* cipher : {"AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"}) {
      EXPECT_TRUE(speaks(kind, "ECDHE-" + signs + "-" + cipher)) << cipher;
    }
    for (const char* cipher : {"AES128-SHA", "AES128-SHA256", "AES256-SHA384"}) {
      EXPECT_FALSE(speaks(kind, "ECDHE-" + signs + "-" + cipher)) << cipher;
    }
  }
  [[nodiscard]] bool takes(const std::string& authority) const {
    return TlsClient(port_, at(authority)).is_connected();
  }
};

TEST_F(HttpsServiceTest, AnswersWhoSpeaksEitherVersion) {
  serve_https();
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(port_, at("p256/ca.pem"), version);
    ASSERT_TRUE(client.is_connected()) << version;
    for (const char* path : {"/now", "/later"}) {
      client.write("POST " + std::string(path) +
                   " HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab");
      const std::string reply = client.read("ab\n");
      EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
      EXPECT_THAT(reply, HasSubstr(std::string(path) + " ab\n"));
    }
  }
  EXPECT_FALSE(TlsClient(port_, at("p256/ca.pem"), TLS1_1_VERSION).is_connected());
}

// Only ciphers of TLS 1.2 with forward secrecy and without padding are accepted.
TEST_F(HttpsServiceTest, OldCiphersAreNotSpoken) {
  serve_https({}, "p256");
  expect_new_ciphers_alone("p256", "ECDSA");
}

TEST_F(HttpsServiceTest, NorAreThoseThatSendAKeyUnderTheServers) {
  make("rsa");
  serve_https({}, "rsa");
  expect_new_ciphers_alone("rsa", "RSA");
  EXPECT_FALSE(speaks("rsa", "AES128-GCM-SHA256"));
  EXPECT_FALSE(speaks("rsa", "AES128-SHA"));
}

TEST_F(HttpsServiceTest, KeysAreExchangedOverThreeGroups) {
  serve_https();
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    for (const auto& [group, is_spoken] : {std::pair("X25519:P-256", true),
                                           {"P-256", true},
                                           {"P-384:P-256", true},
                                           {"P-521", false}}) {
      const TlsClient client(port_, at("p256/ca.pem"), version, "DEFAULT", group);
      EXPECT_EQ(client.is_connected(), is_spoken) << group;
    }
  }
}

// Later requests of a record are no longer in the socket.
TEST_F(HttpsServiceTest, RequestsOfOneRecordAreAnsweredInOrder) {
  serve_https();
  TlsClient client(port_, at("p256/ca.pem"));
  std::string all;
  for (int i = 0; i < 2000; ++i) {
    all += "GET /" + std::string(i % 3 == 0 ? "later" : "now") + " HTTP/1.1\r\nHost: x\r\n\r\n";
  }
  client.write(all + "GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string replies = client.read("/end \n");
  std::size_t place = 0;
  for (int i = 0; i < 2000; ++i) {
    place = replies.find(i % 3 == 0 ? "\r\n\r\nGET /later \n" : "\r\n\r\nGET /now \n", place);
    ASSERT_NE(place, std::string::npos) << i;
    ++place;
  }
  EXPECT_THAT(replies.substr(place), testing::EndsWith("\r\n\r\nGET /end \n"));
  EXPECT_EQ(client.read("more"), "");
  EXPECT_TRUE(client.has_ended_well());
}

TEST_F(HttpsServiceTest, AnAnswerThatIsNotReadWaits) {
  serve_https();
  TlsClient slow(port_, at("p256/ca.pem"));
  slow.write("GET /now?1000000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  TlsClient other(port_, at("p256/ca.pem"));
  other.write("GET /other HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(other.read("/other \n"), StartsWith("HTTP/1.1 200 OK"));
  const std::string reply = slow.read("none");
  EXPECT_EQ(reply.size() - reply.find("\r\n\r\n") - 4, 1000000 * std::string("GET /now \n").size());
  EXPECT_TRUE(slow.has_ended_well());
}

TEST_F(HttpsServiceTest, ABodyOfManyRecordsComesWhole) {
  constexpr std::size_t kBytes = 1'000'000;
  HttpServiceOptions options;
  options.max_body_bytes = kBytes;
  serve_https(options);
  TlsClient client(port_, at("p256/ca.pem"));
  const std::string body(kBytes, 'b');
  client.write("POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + body);
  EXPECT_TRUE(client.read("b\n").ends_with("/body " + body + "\n"));
}

TEST_F(HttpsServiceTest, WhoAsksWithoutTlsIsToldSo) {
  serve_https();
  const std::string reply = RawClient(port_).write("GET /now HTTP/1.1\r\nHost: x\r\n\r\n").read();
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(reply, HasSubstr("{\"error\":\"this address accepts only https\"}"));
  EXPECT_EQ(RawClient(port_).write("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c").read(), "");
  EXPECT_TRUE(takes("p256/ca.pem"));
}

TEST_F(HttpsServiceTest, WhoShakesNoHandsHasNotForEver) {
  HttpServiceOptions options;
  options.request_timeout = milliseconds(50);
  serve_https(options);
  RawClient silent(port_);
  RawClient begins(port_);
  begins.write("\x16\x03\x01");
  EXPECT_TRUE(silent.is_closed());
  EXPECT_TRUE(begins.is_closed());
}

// Surplus clients must be informed over TLS, which takes time and must be limited.
TEST_F(HttpsServiceTest, WhoIsOneTooManyAndShakesHandsSlowlyHasNotForEver) {
  HttpServiceOptions options;
  options.write_timeout = milliseconds(50);
  serve_https(options, "p256", 1);
  TlsClient first(port_, at("p256/ca.pem"));
  ASSERT_TRUE(first.is_connected());
  RawClient trickles(port_);
  trickles.write("\x16\x03\x01\x40");  // of a record of 16 KiB
  bool is_closed = false;
  for (int i = 0; i < 500 && !is_closed; ++i) {
    trickles.write(std::string(1, '\0'));
    is_closed = trickles.is_closed_within(milliseconds(20));
  }
  EXPECT_TRUE(is_closed);
  first.write("GET /first HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(first.read("/first \n"), StartsWith("HTTP/1.1 200 OK"));
}

// All requests arrive before the first is answered, so no further wait for the socket is needed.
TEST_F(HttpsServiceTest, WhoHasAskedMuchAtOnceHasNoMoreThanAShareOfATurn) {
  serve_https();
  TlsClient client(port_, at("p256/ca.pem"));
  constexpr int kRequests = 8000;
  std::string all = "GET /computes HTTP/1.1\r\nHost: x\r\n\r\n";
  for (int i = 0; i < kRequests; ++i) all += "GET /now HTTP/1.1\r\nHost: x\r\n\r\n";
  client.write(all + "GET /end HTTP/1.1\r\nHost: x\r\n\r\n");
  let_end();
  EXPECT_THAT(client.read("/end \n"), StartsWith("HTTP/1.1 200 OK"));
  // Two shares: one because the socket had data, and one because more was left after the last
  // share.
  EXPECT_LT(counts_.most_in_a_turn, 2 * kRequests / 3);
  EXPECT_GT(counts_.most_in_a_turn, 100);
}

TEST_F(HttpsServiceTest, ANewCertificateIsShownToWhoConnectsNext) {
  serve_https();
  make("ed25519");
  EXPECT_FALSE(takes("ed25519/ca.pem"));
  TlsClient open(port_, at("p256/ca.pem"));
  ASSERT_TRUE(open.is_connected());
  rename("ed25519/server.pem", "p256/server.pem");
  EXPECT_TRUE(takes("p256/ca.pem")) << "its key is not there yet";
  EXPECT_THAT(warnings(), testing::ElementsAre(HasSubstr("the previous certificate stays in use")));
  rename("ed25519/server.key", "p256/server.key");
  EXPECT_TRUE(takes("ed25519/ca.pem"));
  EXPECT_FALSE(takes("p256/ca.pem"));
  open.write("GET /open HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(open.read("/open \n"), StartsWith("HTTP/1.1 200 OK"))
      << "open connections keep their certificate";
  std::filesystem::remove(at("p256/server.pem"));
  EXPECT_TRUE(takes("ed25519/ca.pem")) << "a file that is being replaced";
  EXPECT_EQ(warnings().size(), 1U);
}

TEST_F(HttpsServiceTest, WhatIsNoIdentityIsRefusedInASentence) {
  make("rsa");
  put("text", "no PEM\n");
  EXPECT_EQ(refusal("none.pem", "p256/server.key"),
            "--tls_cert: \"none.pem\" cannot be read: No such file or directory");
  EXPECT_EQ(refusal("p256/server.pem", "none.key"),
            "--tls_key: \"none.key\" cannot be read: No such file or directory");
  EXPECT_THAT(refusal("text", "p256/server.key"),
              StartsWith("--tls_cert: \"text\" is not a PEM file with a certificate"));
  EXPECT_THAT(
      refusal("p256/server.pem", "text"),
      StartsWith("--tls_key: \"text\" is not a PEM file with a private key without a password"));
  EXPECT_THAT(refusal("p256/server.pem", "rsa/server.key"),
              StartsWith("--tls_key: \"rsa/server.key\" is not the key of the certificate "
                         "\"p256/server.pem\""));
  make("keys");
  EXPECT_THAT(
      refusal("p256/server.pem", "keys/encrypted.key"),
      StartsWith("--tls_key: \"keys/encrypted.key\" is not a PEM file with a private key without "
                 "a password"));
}

}  // namespace
}  // namespace disttf::net
