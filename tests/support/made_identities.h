// Identities of servers that a program of its own has made: see tls_identities_main.cc.
#pragma once

#include <string>

namespace disttf::test_support {

// make_tls_identities, which takes a KIND and a DIR.
[[nodiscard]] std::string identity_maker();

}  // namespace disttf::test_support
