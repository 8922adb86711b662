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
                     " over [https](serve.md#over-https) alone, as the certificate in this file, "
                     "PEM, behind which are those between it and its authority; read again where "
                     "it has changed")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--tls_key", files.key, "its key, PEM, without a password")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--token_file", files.tokens,
                 std::string(what) +
                     " to those alone who say one of the [tokens](security.md#access-tokens) in this "
                     "file, one a line, 32 characters at least, and which its owner alone may "
                     "read; read again where it has changed")
      ->type_name("FILE")
      ->group(group);
}

void check_address_flags(const roles::AddressFiles& files) {
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
