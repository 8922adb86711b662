#include "tests/support/tls_identity.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

namespace disttf::test_support {
namespace {

void check(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string("OpenSSL could not ") + what);
}

OpenSsl<EVP_PKEY> make_key() {
  OpenSsl<EVP_PKEY> key(EVP_EC_gen("P-256"));
  check(key != nullptr, "make a key");
  return key;
}

void add_extension(X509& certificate, X509& issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  check(extension != nullptr, "make an extension");
  const int added = X509_add_ext(&certificate, extension, -1);
  X509_EXTENSION_free(extension);
  check(added == 1, "add an extension");
}

// Ed25519 and Ed448 contain their own digest.
const EVP_MD* digest_for(EVP_PKEY& key) {
  const bool own = EVP_PKEY_is_a(&key, "ED25519") == 1 || EVP_PKEY_is_a(&key, "ED448") == 1;
  return own ? nullptr : EVP_sha256();
}

}  // namespace

OpenSsl<X509> make_certificate(const Certificate& what, EVP_PKEY& key, X509* issuer,
                               EVP_PKEY& issuer_key) {
  OpenSsl<X509> certificate(X509_new());
  check(certificate != nullptr, "make a certificate");
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), what.serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()),
                  std::min(what.begins_s, what.ends_s - 7200));
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), what.ends_s);
  check(X509_set_pubkey(certificate.get(), &key) == 1, "write a key into a certificate");
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  const auto* text = reinterpret_cast<const unsigned char*>(what.name.c_str());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, text, -1, -1, 0);
  X509& signer = issuer != nullptr ? *issuer : *certificate;
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(&signer));
  add_extension(*certificate, signer, what.extension, what.value);
  if (!what.usages.empty()) add_extension(*certificate, signer, NID_ext_key_usage, what.usages);
  check(X509_sign(certificate.get(), &issuer_key, digest_for(issuer_key)) != 0,
        "sign a certificate");
  return certificate;
}

TestAuthority::TestAuthority()
    : key_(make_key()),
      certificate_(make_certificate({.name = "disttf test authority",
                                     .extension = NID_basic_constraints,
                                     .value = "critical,CA:TRUE"},
                                    *key_, nullptr, *key_)) {}

void TestAuthority::write_certificate(const std::filesystem::path& path) const {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"),
                                                             &std::fclose);
  check(file != nullptr && PEM_write_X509(file.get(), certificate_.get()) == 1,
        "write a certificate");
}

OpenSsl<SSL_CTX> TestAuthority::issue(const std::string& alternative_name) const {
  const OpenSsl<EVP_PKEY> key = make_key();
  const OpenSsl<X509> certificate = make_certificate({.name = "disttf test server",
                                                      .serial = 2,
                                                      .extension = NID_subject_alt_name,
                                                      .value = alternative_name},
                                                     *key, certificate_.get(), *key_);
  OpenSsl<SSL_CTX> context(SSL_CTX_new(TLS_server_method()));
  check(context != nullptr, "make a context");
  check(SSL_CTX_use_certificate(context.get(), certificate.get()) == 1, "use a certificate");
  check(SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1, "use a key");
  return context;
}

}  // namespace disttf::test_support
