#include "net/http/http_connection.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <asio/ip/address.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/ssl/error.hpp>
#include <asio/write.hpp>
#include <chrono>
#include <vector>

#include "net/http/http_error.h"
#include "net/tcp/lookup.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

// With several addresses each gets its share of the remaining time, but at least this: a lost SYN
// is sent again after one second.
constexpr std::chrono::milliseconds kLeastConnectTime{1500};

bool is_numeric(const std::string& host) {
  std::error_code error;
  static_cast<void>(asio::ip::make_address(host, error));
  return !error;
}

// Asio's own system category (1.22) does not map to std::errc; the standard one does.
std::error_code standard(const std::error_code& error) {
  if (error.category() != asio::error::get_system_category()) return error;
  return {error.value(), std::system_category()};
}

// Sets the name that the certificate must have, and (for names) the server name indication.
bool expect_host(SSL* ssl, const std::string& host) {
  if (is_numeric(host)) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1;
  }
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  // SSL_set_tlsext_host_name without its old-style cast. OpenSSL copies the name.
  return SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                  const_cast<char*>(host.c_str())) == 1 &&
         SSL_set1_host(ssl, host.c_str()) == 1;
}

}  // namespace

HttpConnection::HttpConnection(const Interrupt& interrupt) : interrupt_(interrupt) {
  watch_.assign(interrupt.fd());
  // Completes only on the interrupt. The handler has nothing to do, because run() checks the
  // interrupt.
  watch_.async_wait(asio::posix::stream_descriptor::wait_read, [](const std::error_code&) {});
}

HttpConnection::~HttpConnection() {
  watch_.release();  // the descriptor belongs to the Interrupt
}

void HttpConnection::close() noexcept {
  std::error_code ignored;
  socket_.close(ignored);
}

// Starts one asynchronous operation and runs the io_context until it is over. If the deadline or
// the interrupt comes first, closes the socket, which ends the operation: its buffers belong to the
// caller, so it must not outlive this call.
template <class Start>
std::error_code HttpConnection::run(Deadline deadline, std::size_t& bytes, const Start& start) {
  std::optional<std::error_code> result;
  // A context that ran out of work earlier would return at once.
  io_.restart();
  start([&result, &bytes](const std::error_code& error, std::size_t transferred = 0) {
    result = error;
    bytes = transferred;
  });
  while (!result && !interrupt_.interrupted() && Clock::now() < deadline) {
    io_.run_one_until(deadline);
  }
  // Not closed: a peer that takes no more of a request may have answered it.
  if (result) return standard(*result);
  close();
  // The handler refers to locals of this call, so it has to run before the call returns.
  while (!result) io_.run_one();
  return std::make_error_code(interrupt_.interrupted() ? std::errc::operation_canceled
                                                       : std::errc::timed_out);
}

std::error_code HttpConnection::connect(const std::string& host, std::uint16_t port,
                                        Deadline deadline) {
  std::error_code error;
  const std::vector<asio::ip::tcp::endpoint> endpoints =
      resolve({.host = host, .port = port}, interrupt_, deadline, error);
  std::size_t left = endpoints.size();
  for (const asio::ip::tcp::endpoint& endpoint : endpoints) {
    const Deadline::duration share = (deadline - Clock::now()) / static_cast<int>(left--);
    const Deadline until =
        std::min(deadline, Clock::now() + std::max<Deadline::duration>(share, kLeastConnectTime));
    std::size_t ignored = 0;
    // A socket whose connect failed cannot be used for another address.
    close();
    error =
        run(until, ignored, [&](auto done) { socket_.async_connect(endpoint, std::move(done)); });
    if (!error) {
      // Ignored: a failure only costs latency.
      std::error_code no_delay;
      socket_.set_option(asio::ip::tcp::no_delay(true), no_delay);
      return {};
    }
    if (error == std::errc::operation_canceled) return error;
  }
  return error;
}

std::error_code HttpConnection::connect_local(const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return std::make_error_code(std::errc::filename_too_long);
  }
  std::error_code error;
  socket_.connect(asio::local::stream_protocol::endpoint(path), error);
  return standard(error);
}

std::error_code HttpConnection::start_tls(const std::string& host, const std::string& ca_file,
                                          Deadline deadline, std::string& sentence) {
  ignore_openssl_config();
  tls_context_.emplace(asio::ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(tls_context_->native_handle(), TLS1_2_VERSION);
  if (const auto error = load_authorities(*tls_context_, ca_file, sentence)) return error;
  tls_.emplace(socket_, *tls_context_);
  tls_->set_verify_mode(asio::ssl::verify_peer);
  SSL* const ssl = tls_->native_handle();
  if (!expect_host(ssl, host)) return std::make_error_code(std::errc::not_enough_memory);
  std::size_t ignored = 0;
  const std::error_code error = run(deadline, ignored, [&](auto done) {
    tls_->async_handshake(asio::ssl::stream_base::client, std::move(done));
  });
  const long verdict = SSL_get_verify_result(ssl);
  // The handshake's error says only that the verification failed; the verdict says why.
  if (error && verdict != X509_V_OK) {
    sentence = "the certificate that it shows is not accepted for " + host + " (" +
               X509_verify_cert_error_string(verdict) + ")";
    return HttpError::kBadCertificate;
  }
  return error;
}

std::error_code HttpConnection::write(std::string_view text, Deadline deadline) {
  std::size_t ignored = 0;
  return run(deadline, ignored, [&](auto done) {
    if (tls_) {
      asio::async_write(*tls_, asio::buffer(text), std::move(done));
    } else {
      asio::async_write(socket_, asio::buffer(text), std::move(done));
    }
  });
}

std::error_code HttpConnection::read_some(std::span<std::byte> buffer, std::size_t& bytes,
                                          Deadline deadline) {
  return run(deadline, bytes, [&](auto done) {
    const asio::mutable_buffer target = asio::buffer(buffer.data(), buffer.size());
    if (tls_) {
      tls_->async_read_some(target, std::move(done));
    } else {
      socket_.async_read_some(target, std::move(done));
    }
  });
}

bool HttpConnection::is_orderly_end(const std::error_code& error) noexcept {
  return error == asio::error::eof;
}

// The machine's openssl.cnf could permit older versions and ciphers than this program does.
void ignore_openssl_config() noexcept { OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr); }

std::string find_ca_file() {
  static constexpr std::array kPlaces{
      "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Arch, Gentoo
      "/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora, RHEL
      "/etc/ssl/ca-bundle.pem",                             // openSUSE
      "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // CentOS 7 and later
      "/etc/ssl/cert.pem",                                  // Alpine, BSD
  };
  for (const char* place : kPlaces) {
    if (access(place, R_OK) == 0) return place;
  }
  return {};
}

std::error_code load_authorities(asio::ssl::context& context, std::string ca_file,
                                 std::string& sentence) {
  if (ca_file.empty()) ca_file = find_ca_file();
  if (ca_file.empty()) {
    sentence =
        "this machine has no file of certificate authorities in the usual places (such as "
        "/etc/ssl/certs/ca-certificates.crt); name one with --ca_file";
    return HttpError::kNoCaFile;
  }
  std::error_code error;
  context.load_verify_file(ca_file, error);
  ERR_clear_error();  // errors left in the thread's queue would be attributed to the next call
  if (!error) return {};
  sentence = "the file of certificate authorities " + net::quoted(ca_file) +
             " cannot be used: " + error.message() + "; name another with --ca_file";
  return HttpError::kBadCaFile;
}

}  // namespace disttf::net
