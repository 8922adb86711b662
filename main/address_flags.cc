#include "main/address_flags.h"

#include <CLI/CLI.hpp>
#include <stdexcept>
#include <string>

#include "net/wire/text.h"

namespace disttf {

void add_address_flags(CLI::App& app, roles::AddressFiles& files, const char* what,
                       const char* group) {
  app.add_option("--tls_cert", files.certificate,
                 std::string(what) +
                     " only over [https](serve.md#over-https), with this certificate chain, PEM; "
                     "reloaded when it changes")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--tls_key", files.key, "private key of `--tls_cert`, PEM, unencrypted")
      ->type_name("FILE")
      ->group(group);
  app.add_option(
         "--token_file", files.tokens,
         std::string(what) +
             " only to clients with a [token](security.md#access-tokens) of this file: one a line, "
             "at least 32 characters, readable only by its owner; reloaded when it changes")
      ->type_name("FILE")
      ->group(group);
}

void check_address_flags(const roles::AddressFiles& files) {
  // Both or none: with one of them the address would silently stay without TLS.
  if (files.certificate.empty() == files.key.empty()) {
    return;
  }
  const bool has_key = files.certificate.empty();
  throw std::invalid_argument(std::string(has_key ? "--tls_cert" : "--tls_key") +
                              ": missing; it belongs to " +
                              (has_key ? "--tls_key " : "--tls_cert ") +
                              net::quoted(has_key ? files.key : files.certificate));
}

}  // namespace disttf
