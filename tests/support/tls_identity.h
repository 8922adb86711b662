// A certificate authority made on the spot, and servers' identities signed by it: https in tests
// without a file or a secret in the tree.
//
// Not thread-safe while made; an identity may then be used by several threads.
#pragma once

#include <openssl/ssl.h>

#include <filesystem>
#include <memory>
#include <string>

namespace disttf::test_support {

struct OpenSslFree {
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const noexcept { X509_free(certificate); }
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
};
template <class T>
using OpenSsl = std::unique_ptr<T, OpenSslFree>;

struct Certificate {
  std::string name;
  long serial = 1;
  int extension = 0;  // NID of one, with its value as OpenSSL's configuration has it
  std::string value;
  std::string usages = {};   // what the key may be used for (extendedKeyUsage); empty: anything
  long ends_s = 24L * 3600;  // from now
  long begins_s = -3600;     // the same; two hours before its end at the latest
};

// `key`'s, signed by `issuer` with its key; by itself where `issuer` is null. Throws
// std::runtime_error when OpenSSL fails.
[[nodiscard]] OpenSsl<X509> make_certificate(const Certificate& what, EVP_PKEY& key, X509* issuer,
                                             EVP_PKEY& issuer_key);

// Throws std::runtime_error when OpenSSL fails.
class TestAuthority {
 public:
  TestAuthority();
  // Its certificate as PEM: what --ca_file takes.
  void write_certificate(const std::filesystem::path& path) const;
  // A server's context with a fresh key. `alternative_name` as OpenSSL writes it: "DNS:localhost",
  // "IP:127.0.0.1", several separated by commas.
  [[nodiscard]] OpenSsl<SSL_CTX> issue(const std::string& alternative_name) const;

 private:
  OpenSsl<EVP_PKEY> key_;
  OpenSsl<X509> certificate_;
};

}  // namespace disttf::test_support
