// What a TLS client needs to trust a server: OpenSSL set up alike on every machine, and the file of
// certificate authorities.
#pragma once

#include <asio/ssl/context.hpp>
#include <string>
#include <system_error>

namespace disttf::net {

// Keeps OpenSSL from reading the machine's openssl.cnf, which may name modules that a static file
// cannot load. Works only before OpenSSL's first use in the process: main calls it at its start,
// make_tls_context again. Callable from any thread.
void ignore_openssl_config() noexcept;

// The system's file of certificate authorities (PEM) among the places where the distributions
// keep it; empty when there is none (a bare container).
[[nodiscard]] std::string find_ca_file();

// A client's context: TLS 1.2 or later, the server's certificate verified against `ca_file`.
// Errors: HttpError::kNoCaFile when `ca_file` is empty and the system has none,
// HttpError::kBadCaFile when it cannot be read or holds no certificate. `sentence` then says more.
[[nodiscard]] std::error_code load_authorities(asio::ssl::context& context, std::string ca_file,
                                               std::string& sentence);

}  // namespace disttf::net
