// Server identities that a separate program makes: see tls_identities_main.cc.
#pragma once

#include <string>

namespace disttf::test_support {

// Returns the path of make_tls_identities, which takes a KIND and a DIR.
[[nodiscard]] std::string identity_maker();

}  // namespace disttf::test_support
