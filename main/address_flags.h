// --tls_cert, --tls_key and --token_file: TLS and bearer tokens of the HTTP addresses.
#pragma once

#include <CLI/App.hpp>

#include "roles/monitor/shell/address_files.h"

namespace disttf {

// Adds the three flags to `group`. `what` begins their descriptions: "answer", "show the page".
void add_address_flags(CLI::App& app, roles::AddressFiles& files, const char* what,
                       const char* group);
// Throws std::invalid_argument if one of --tls_cert and --tls_key is given without the other.
void check_address_flags(const roles::AddressFiles& files);

}  // namespace disttf
