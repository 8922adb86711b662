#include "net/http/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <array>

#include "net/http/http_error.h"
#include "net/wire/text.h"

namespace disttf::net {

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
