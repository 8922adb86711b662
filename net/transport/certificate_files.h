// Certificates, their keys and the authorities that are trusted, from PEM files that flags name.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

namespace disttf::net {

// A file and the flag that names it, for sentences.
struct NamedFile {
  const char* flag = "";
  std::string path;
};

// Files that are not each other's, as for a moment while they are being renewed: a key of another
// certificate, a certificate of another authority.
class NotFittingYet : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// All throw std::invalid_argument: the flag, the file, what is wrong with it.

// The certificate, with those between it and its authority behind it, and its key, which has no
// password; NotFittingYet.
void use_certificate(SSL_CTX& context, const NamedFile& certificate, const NamedFile& key);
// What these have signed is trusted, also where another one has signed them.
void trust(SSL_CTX& context, const NamedFile& authorities);
// `what` is wrong with the file, and OpenSSL's last error.
[[nodiscard]] std::invalid_argument unusable(const NamedFile& file, const std::string& what);

// Who is started again while files are renewed must not end for good: what make() returns, once it
// does not throw NotFittingYet any more; after 3 s it may.
template <class Make>
[[nodiscard]] auto while_renewed(const Make& make) {
  constexpr std::chrono::seconds kRenewal{3};
  constexpr std::chrono::milliseconds kPause{50};
  const auto until = std::chrono::steady_clock::now() + kRenewal;
  while (true) {
    try {
      return make();
    } catch (const NotFittingYet&) {
      if (std::chrono::steady_clock::now() >= until) throw;
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace disttf::net
