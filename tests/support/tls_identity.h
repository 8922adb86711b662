// A certificate authority that a test creates at run time, and server identities signed by it:
// https in tests without a file or a secret in the tree.
//
// Not thread-safe during creation; several threads may then use an identity.
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
  int extension = 0;  // NID of an extension, with its value in OpenSSL's configuration format
  std::string value;
  std::string usages = {};   // allowed uses of the key (extendedKeyUsage); empty: any
  long ends_s = 24L * 3600;  // from now
  long begins_s = -3600;     // from now; at the latest two hours before its end
};

// Returns a certificate for `key`, signed by `issuer` with its key; self-signed if `issuer` is
// null. Throws std::runtime_error if OpenSSL fails.
[[nodiscard]] OpenSsl<X509> make_certificate(const Certificate& what, EVP_PKEY& key, X509* issuer,
                                             EVP_PKEY& issuer_key);

// Throws std::runtime_error if OpenSSL fails.
class TestAuthority {
 public:
  TestAuthority();
  // Writes the authority's certificate as PEM, for --ca_file.
  void write_certificate(const std::filesystem::path& path) const;
  // Returns a server's context with a new key. `alternative_name` in OpenSSL's format:
  // "DNS:localhost", "IP:127.0.0.1", several separated by commas.
  [[nodiscard]] OpenSsl<SSL_CTX> issue(const std::string& alternative_name) const;

 private:
  OpenSsl<EVP_PKEY> key_;
  OpenSsl<X509> certificate_;
};

}  // namespace disttf::test_support
