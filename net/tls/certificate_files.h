// Reads certificates, their keys and trusted authorities from PEM files that flags name.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

namespace disttf::net {

// A file and the flag that names it, for error messages.
struct NamedFile {
  const char* flag = "";
  std::string path;
};

// Files that do not match, as for a moment during a renewal: a key of another certificate, a
// certificate of another authority.
class NotFittingYet : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// All throw std::invalid_argument: the flag, the file, what is wrong with it.

// Loads the certificate, followed in its file by those between it and its authority, and its key,
// which has no password. Throws also NotFittingYet.
void use_certificate(SSL_CTX& context, const NamedFile& certificate, const NamedFile& key);
// Trusts certificates that these have signed, even where another authority has signed these.
void trust(SSL_CTX& context, const NamedFile& authorities);
// Builds the exception: `what` is wrong with the file, and OpenSSL's last error.
[[nodiscard]] std::invalid_argument unusable(const NamedFile& file, const std::string& what);

// Returns what make() returns. While make() throws NotFittingYet, retries for 3 s: a task that
// starts during a renewal must not exit for good.
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
