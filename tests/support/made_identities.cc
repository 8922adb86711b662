#include "tests/support/made_identities.h"

namespace disttf::test_support {

std::string identity_maker() { return DISTTF_MAKE_TLS_IDENTITIES; }

}  // namespace disttf::test_support
