// The server for services over https: what is asked and answered is what http_service_test.cc has;
// here that all of it passes through TLS, whose records are cut otherwise than requests are, and
// who the server says it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio/io_context.hpp>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "net/http/http_service.h"
#include "net/http/tls_identity.h"
#include "net/transport/server.h"
#include "tests/data/scratch.h"
#include "tests/net/raw_http_client.h"
#include "tests/support/tls_identity.h"

namespace disttf::net {
namespace {

using std::chrono::milliseconds;
using test::RawClient;
using test_support::OpenSsl;
using testing::HasSubstr;
using testing::StartsWith;

// The path, as often as the query says; of /later not before the next turn.
class Paths final : public HttpServiceHandler {
 public:
  void ask(HttpExchange& exchange) override {
    if (exchange.request().path == "/later") {
      later_.push_back(&exchange);
    } else {
      answer(exchange);
    }
  }
  bool work() override {
    for (HttpExchange* const each : std::exchange(later_, {})) answer(*each);
    return false;
  }
  void answered(const HttpExchange& /*exchange*/, int /*status*/, std::size_t /*bytes*/) override {}

 private:
  static void answer(HttpExchange& exchange) {
    const HttpServerRequest& request = exchange.request();
    const std::size_t times = request.query.empty() ? 1 : std::stoul(request.query);
    std::string body;
    for (std::size_t i = 0; i < times; ++i) body += request.path + request.body + "\n";
    exchange.answer({.content_type = "text/plain", .body = body});
  }
  std::vector<HttpExchange*> later_;
};

// Somebody who trusts the authority of `ca_file`, and asks for localhost.
class TlsClient {
 public:
  TlsClient(std::uint16_t port, const std::string& ca_file, int version = TLS1_3_VERSION)
      : fd_(::socket(AF_INET, SOCK_STREAM, 0)), context_(SSL_CTX_new(TLS_client_method())) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        SSL_CTX_load_verify_locations(context_.get(), ca_file.c_str(), nullptr) != 1) {
      throw std::runtime_error("cannot connect");
    }
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_min_proto_version(context_.get(), version);
    SSL_CTX_set_max_proto_version(context_.get(), version);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set1_host(ssl_.get(), "localhost");
    SSL_set_fd(ssl_.get(), fd_);
    is_connected_ = SSL_connect(ssl_.get()) == 1;
    ERR_clear_error();
  }
  ~TlsClient() {
    ssl_.reset();
    ::close(fd_);
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  [[nodiscard]] bool is_connected() const { return is_connected_; }
  // One record of it for each 16 KB.
  void write(std::string_view text) {
    std::size_t written = 0;
    EXPECT_EQ(SSL_write_ex(ssl_.get(), text.data(), text.size(), &written), 1);
    EXPECT_EQ(written, text.size());
  }
  // Until `enough` is in it, or the end.
  std::string read(const std::string& enough) {
    std::string text;
    std::array<char, 20'000> buffer{};
    std::size_t size = 0;
    while (text.find(enough, text.size() - std::min(text.size(), enough.size() + size)) ==
               std::string::npos &&
           SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), &size) == 1) {
      text.append(buffer.data(), size);
    }
    return text;
  }
  // Whether the server has said farewell, so that nothing was cut off.
  [[nodiscard]] bool has_ended_well() const {
    return (SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0;
  }

 private:
  int fd_;
  OpenSsl<SSL_CTX> context_;
  OpenSsl<SSL> ssl_;
  bool is_connected_ = false;
};

class HttpsServiceTest : public testing::Test {
 protected:
  HttpsServiceTest() { make("p256"); }
  ~HttpsServiceTest() override {
    if (service_) service_->stop();
    for (std::thread& each : threads_) each.join();
  }
  // Folder KIND with ca.pem, server.pem and server.key.
  void make(const std::string& kind) const {
    const std::string command = DISTTF_MAKE_TLS_IDENTITIES " " + kind + " " + at(kind);
    if (std::system(command.c_str()) != 0) throw std::runtime_error(command);
  }
  [[nodiscard]] std::string at(const std::string& name) const {
    return (scratch_.path() / name).string();
  }
  [[nodiscard]] std::shared_ptr<TlsIdentity> identity(const std::string& certificate,
                                                      const std::string& key) {
    return std::make_shared<TlsIdentity>(at(certificate), at(key), [this](std::string_view text) {
      const std::scoped_lock lock(mutex_);
      warnings_.emplace_back(text);
    });
  }
  void serve(HttpServiceOptions options = {}) {
    options.threads = 2;
    options.identity = identity("p256/server.pem", "p256/server.key");
    auto acceptor = listen_on(context_, 0, ListenScope::kLoopback);
    port_ = acceptor.local_endpoint().port();
    service_ = std::make_unique<HttpService>(
        std::move(acceptor), options,
        [](std::size_t /*thread*/) { return std::make_unique<Paths>(); });
    for (std::size_t i = 0; i < 2; ++i) {
      threads_.emplace_back([this, i] { service_->run(i); });
    }
  }
  [[nodiscard]] bool takes(const std::string& authority) const {
    return TlsClient(port_, at(authority)).is_connected();
  }
  [[nodiscard]] std::string refusal(const std::string& certificate, const std::string& key) {
    try {
      static_cast<void>(identity(certificate, key));
    } catch (const std::invalid_argument& error) {
      std::string text = error.what();
      const std::string folder = at("");
      for (std::size_t place; (place = text.find(folder)) != std::string::npos;) {
        text.erase(place, folder.size());
      }
      return text;
    }
    return "(accepted)";
  }
  [[nodiscard]] std::vector<std::string> warnings() {
    const std::scoped_lock lock(mutex_);
    return warnings_;
  }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(at(name)) << text;
  }
  // As whoever renews a certificate does it.
  void rename(const std::string& from, const std::string& to) const {
    std::filesystem::rename(at(from), at(to));
  }

  const data::test::ScratchDirectory scratch_;
  asio::io_context context_;
  std::unique_ptr<HttpService> service_;
  std::vector<std::thread> threads_;
  std::uint16_t port_ = 0;

 private:
  std::mutex mutex_;
  std::vector<std::string> warnings_;  // guarded by mutex_
};

TEST_F(HttpsServiceTest, AnswersWhoSpeaksEitherVersion) {
  serve();
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(port_, at("p256/ca.pem"), version);
    ASSERT_TRUE(client.is_connected()) << version;
    for (const char* path : {"/now", "/later"}) {
      client.write("POST " + std::string(path) +
                   " HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab");
      const std::string reply = client.read("ab\n");
      EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
      EXPECT_THAT(reply, HasSubstr(std::string(path) + "ab\n"));
    }
  }
  EXPECT_FALSE(TlsClient(port_, at("p256/ca.pem"), TLS1_1_VERSION).is_connected());
}

// Of requests that come in one record the later ones are in no socket any more.
TEST_F(HttpsServiceTest, RequestsOfOneRecordAreAnsweredInOrder) {
  serve();
  TlsClient client(port_, at("p256/ca.pem"));
  std::string all;
  for (int i = 0; i < 2000; ++i) {
    all += "GET /" + std::string(i % 3 == 0 ? "later" : "now") + " HTTP/1.1\r\nHost: x\r\n\r\n";
  }
  client.write(all + "GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string replies = client.read("/end\n");
  std::size_t place = 0;
  for (int i = 0; i < 2000; ++i) {
    place = replies.find(i % 3 == 0 ? "\r\n\r\n/later\n" : "\r\n\r\n/now\n", place);
    ASSERT_NE(place, std::string::npos) << i;
    ++place;
  }
  EXPECT_THAT(replies.substr(place), testing::EndsWith("\r\n\r\n/end\n"));
  EXPECT_EQ(client.read("more"), "");
  EXPECT_TRUE(client.has_ended_well());
}

TEST_F(HttpsServiceTest, AnAnswerThatIsNotReadWaits) {
  serve();
  TlsClient slow(port_, at("p256/ca.pem"));
  slow.write("GET /now?2000000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  TlsClient other(port_, at("p256/ca.pem"));
  other.write("GET /other HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(other.read("/other\n"), StartsWith("HTTP/1.1 200 OK"));
  const std::string reply = slow.read("none");
  EXPECT_EQ(reply.size() - reply.find("\r\n\r\n") - 4, 2000000 * std::string("/now\n").size());
  EXPECT_TRUE(slow.has_ended_well());
}

TEST_F(HttpsServiceTest, ABodyOfManyRecordsComesWhole) {
  constexpr std::size_t kBytes = 1'000'000;
  HttpServiceOptions options;
  options.max_body_bytes = kBytes;
  serve(options);
  TlsClient client(port_, at("p256/ca.pem"));
  const std::string body(kBytes, 'b');
  client.write("POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + body);
  EXPECT_TRUE(client.read("b\n").ends_with("/body" + body + "\n"));
}

TEST_F(HttpsServiceTest, WhoAsksWithoutTlsIsToldSo) {
  serve();
  const std::string reply = RawClient(port_).write("GET /now HTTP/1.1\r\nHost: x\r\n\r\n").read();
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(reply, HasSubstr("{\"error\":\"this address speaks https alone\"}"));
  EXPECT_EQ(RawClient(port_).write("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c").read(), "");
  EXPECT_TRUE(takes("p256/ca.pem"));
}

TEST_F(HttpsServiceTest, WhoShakesNoHandsHasNotForEver) {
  HttpServiceOptions options;
  options.request_timeout = milliseconds(50);
  serve(options);
  RawClient silent(port_);
  RawClient begins(port_);
  begins.write("\x16\x03\x01");
  EXPECT_EQ(silent.read() + begins.read(), "");
}

TEST_F(HttpsServiceTest, ANewCertificateIsShownToWhoConnectsNext) {
  serve();
  make("ed25519");
  EXPECT_FALSE(takes("ed25519/ca.pem"));
  TlsClient open(port_, at("p256/ca.pem"));
  ASSERT_TRUE(open.is_connected());
  rename("ed25519/server.pem", "p256/server.pem");
  EXPECT_TRUE(takes("p256/ca.pem")) << "its key has not come yet";
  EXPECT_THAT(warnings(), testing::ElementsAre(HasSubstr("the certificate of before stays")));
  rename("ed25519/server.key", "p256/server.key");
  EXPECT_TRUE(takes("ed25519/ca.pem"));
  EXPECT_FALSE(takes("p256/ca.pem"));
  open.write("GET /open HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(open.read("/open\n"), StartsWith("HTTP/1.1 200 OK")) << "keeps what it has";
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
              StartsWith("--tls_cert: \"text\" is no file with a certificate, PEM"));
  EXPECT_THAT(refusal("p256/server.pem", "text"),
              StartsWith("--tls_key: \"text\" is no file with a private key without a password"));
  EXPECT_THAT(refusal("p256/server.pem", "rsa/server.key"),
              StartsWith("--tls_key: \"rsa/server.key\" is not the key of the certificate "
                         "\"p256/server.pem\""));
  make("keys");
  EXPECT_THAT(refusal("p256/server.pem", "keys/encrypted.key"),
              StartsWith("--tls_key: \"keys/encrypted.key\" is no file with a private key without "
                         "a password"));
}

}  // namespace
}  // namespace disttf::net
