// Identities that are created for the test, and a client that checks the server's certificate.
#pragma once

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/tls_identity.h"
#include "tests/data/scratch.h"
#include "tests/support/loopback.h"
#include "tests/support/made_identities.h"
#include "tests/support/tls_identity.h"

namespace disttf::net::test {

using test_support::OpenSsl;

// A client that trusts the authority of `ca_file` and expects localhost.
class TlsClient {
 public:
  TlsClient(std::uint16_t port, const std::string& ca_file, int version = TLS1_3_VERSION,
            const std::string& ciphers = "DEFAULT",
            const std::string& groups = "X25519:P-256:P-384")
      : fd_(::socket(AF_INET, SOCK_STREAM, 0)), context_(SSL_CTX_new(TLS_client_method())) {
    const sockaddr_in address = test_support::loopback(port);
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        SSL_CTX_load_verify_locations(context_.get(), ca_file.c_str(), nullptr) != 1) {
      throw std::runtime_error("cannot connect");
    }
    // For TLS 1.2 and below; without the security level there would be no TLS 1.1.
    EXPECT_EQ(SSL_CTX_set_cipher_list(context_.get(), (ciphers + "@SECLEVEL=0").c_str()), 1);
    EXPECT_EQ(SSL_CTX_set1_groups_list(context_.get(), groups.c_str()), 1);
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
  // Writes one record for each 16 KB.
  void write(std::string_view text) {
    std::size_t written = 0;
    EXPECT_EQ(SSL_write_ex(ssl_.get(), text.data(), text.size(), &written), 1);
    EXPECT_EQ(written, text.size());
  }
  // Reads until the text contains `enough`, or to the end.
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
  // Returns whether the server sent close_notify, so that nothing was truncated.
  [[nodiscard]] bool has_ended_well() const {
    return (SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0;
  }

 private:
  int fd_;
  OpenSsl<SSL_CTX> context_;
  OpenSsl<SSL> ssl_;
  bool is_connected_ = false;
};

// A folder with the identities of localhost that make_tls_identities writes: initially p256.
class WithIdentities : public testing::Test {
 protected:
  WithIdentities() {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL's writes on the client's socket would end the process
    make("p256");
  }

  // Creates folder KIND with ca.pem, server.pem and server.key.
  void make(const std::string& kind) const {
    const std::string command = test_support::identity_maker() + " " + kind + " " + at(kind);
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
  // Replaces a file by rename, as a certificate renewal does.
  void rename(const std::string& from, const std::string& to) const {
    std::filesystem::rename(at(from), at(to));
  }

  const data::test::ScratchDirectory scratch_;

 private:
  std::mutex mutex_;
  std::vector<std::string> warnings_;  // guarded by mutex_
};

}  // namespace disttf::net::test
