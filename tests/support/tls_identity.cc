#include "tests/support/tls_identity.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

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

// Valid from an hour ago for a day. Self-signed when `issuer` is null.
OpenSsl<X509> make_certificate(const std::string& name, long serial, EVP_PKEY& key, X509* issuer,
                               EVP_PKEY& issuer_key, int extension, const std::string& value) {
  OpenSsl<X509> certificate(X509_new());
  check(certificate != nullptr, "make a certificate");
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 24L * 3600);
  X509_set_pubkey(certificate.get(), &key);
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, text, -1, -1, 0);
  X509& signer = issuer != nullptr ? *issuer : *certificate;
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(&signer));
  add_extension(*certificate, signer, extension, value);
  check(X509_sign(certificate.get(), &issuer_key, EVP_sha256()) != 0, "sign a certificate");
  return certificate;
}

}  // namespace

TestAuthority::TestAuthority()
    : key_(make_key()),
      certificate_(make_certificate("disttf test authority", 1, *key_, nullptr, *key_,
                                    NID_basic_constraints, "critical,CA:TRUE")) {}

void TestAuthority::write_certificate(const std::filesystem::path& path) const {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"),
                                                             &std::fclose);
  check(file != nullptr && PEM_write_X509(file.get(), certificate_.get()) == 1,
        "write a certificate");
}

OpenSsl<SSL_CTX> TestAuthority::issue(const std::string& alternative_name) const {
  const OpenSsl<EVP_PKEY> key = make_key();
  const OpenSsl<X509> certificate =
      make_certificate("disttf test server", 2, *key, certificate_.get(), *key_,
                       NID_subject_alt_name, alternative_name);
  OpenSsl<SSL_CTX> context(SSL_CTX_new(TLS_server_method()));
  check(context != nullptr, "make a context");
  check(SSL_CTX_use_certificate(context.get(), certificate.get()) == 1, "use a certificate");
  check(SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1, "use a key");
  return context;
}

}  // namespace disttf::test_support
