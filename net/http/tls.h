// Sets up OpenSSL for TLS clients, alike on every machine, and finds the file of certificate
// authorities.
#pragma once

#include <asio/ssl/context.hpp>
#include <string>
#include <system_error>

namespace disttf::net {

// Keeps OpenSSL from reading the machine's openssl.cnf, which may name modules that a static binary
// cannot load. Effective only before OpenSSL's first use in the process: main calls it at its
// start, and HttpConnection again. Callable from any thread.
void ignore_openssl_config() noexcept;

// Returns the system's file of certificate authorities (PEM) from the usual paths of the
// distributions; empty when there is none (a bare container).
[[nodiscard]] std::string find_ca_file();

// Loads the authorities for a client's context. Errors: HttpError::kNoCaFile when `ca_file` is
// empty and the system has none, HttpError::kBadCaFile when it cannot be read or holds no
// certificate. `sentence` then explains it.
[[nodiscard]] std::error_code load_authorities(asio::ssl::context& context, std::string ca_file,
                                               std::string& sentence);

}  // namespace disttf::net
