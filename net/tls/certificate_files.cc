#include "net/tls/certificate_files.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/waiting/descriptor.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

void must_be_readable(const NamedFile& file) {
  if (::access(file.path.c_str(), R_OK) != 0) {
    throw std::invalid_argument(std::string(file.flag) + ": " + quoted(file.path) +
                                " cannot be read: " + last_error().message());
  }
  // A pipe would be waited at, and is empty when the file is read again.
  struct stat found {};
  if (::stat(file.path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) {
    throw std::invalid_argument(std::string(file.flag) + ": " + quoted(file.path) +
                                " is not a regular file");
  }
}

// No user is there who could enter a password.
int no_passphrase(char* /*buffer*/, int /*size*/, int /*is_written*/, void* /*data*/) { return -1; }

}  // namespace

std::invalid_argument unusable(const NamedFile& file, const std::string& what) {
  const char* const why = ERR_reason_error_string(ERR_peek_last_error());
  std::string sentence = std::string(file.flag) + ": " + quoted(file.path) + " " + what;
  if (why != nullptr) sentence += std::string(" (") + why + ")";
  ERR_clear_error();
  return std::invalid_argument(sentence);
}

void use_certificate(SSL_CTX& context, const NamedFile& certificate, const NamedFile& key) {
  ERR_clear_error();
  SSL_CTX_set_default_passwd_cb(&context, no_passphrase);
  must_be_readable(certificate);
  must_be_readable(key);
  if (SSL_CTX_use_certificate_chain_file(&context, certificate.path.c_str()) != 1) {
    throw unusable(certificate, "is not a PEM file with a certificate");
  }
  const bool is_key =
      SSL_CTX_use_PrivateKey_file(&context, key.path.c_str(), SSL_FILETYPE_PEM) == 1;
  const bool is_other =
      !is_key && ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH;
  // OpenSSL accepts a key of another type than the certificate's, for a certificate to come.
  if (is_other || (is_key && SSL_CTX_check_private_key(&context) != 1)) {
    ERR_clear_error();
    throw NotFittingYet(std::string(key.flag) + ": " + quoted(key.path) +
                        " is not the key of the certificate " + quoted(certificate.path));
  }
  if (!is_key) throw unusable(key, "is not a PEM file with a private key without a password");
}

void trust(SSL_CTX& context, const NamedFile& authorities) {
  ERR_clear_error();
  must_be_readable(authorities);
  if (SSL_CTX_load_verify_locations(&context, authorities.path.c_str(), nullptr) != 1) {
    throw unusable(authorities, "is not a PEM file with certificates");
  }
  // An intermediate authority in the file is trusted by itself; its root need not be there.
  X509_STORE_set_flags(SSL_CTX_get_cert_store(&context), X509_V_FLAG_PARTIAL_CHAIN);
}

}  // namespace disttf::net
