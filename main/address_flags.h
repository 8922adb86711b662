// --tls_cert and --tls_key: the addresses for people and their tools over https.
#pragma once

#include <CLI/App.hpp>

#include "roles/monitor/shell/address_files.h"

namespace disttf {

// `what` of it: "answer", "show the page".
void add_address_flags(CLI::App& app, roles::AddressFiles& files, const char* what,
                       const char* group);
// Throws std::invalid_argument where one of them is missing.
void check_address_flags(const roles::AddressFiles& files);

}  // namespace disttf
