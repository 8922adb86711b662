#include "roles/trainer/core/run_context.h"

namespace disttf::roles {

Failure RunContext::failure_of(std::size_t range, const net::Refusal& refusal) const {
  // A peer sends the code: accept only those that mean something here.
  const int code = refusal.exit_code == kUsage || refusal.exit_code == kLostPeers
                       ? refusal.exit_code
                       : static_cast<int>(kError);
  // The sentence names the ps, since the user may have to look there.
  return {code, "refused by " + ranges[range].name() + ": " + refusal.sentence};
}

}  // namespace disttf::roles
