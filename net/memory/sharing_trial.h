// Checks without a run whether tasks on this machine could share tensors.
#pragma once

#include <string>
#include <system_error>

namespace disttf::net {

// Creates memory and hands it over to this process itself, as a ps and a trainer do. On failure
// `step` says what failed: "to make memory that can be shared (memfd_create)".
[[nodiscard]] std::error_code try_sharing(std::string& step);

}  // namespace disttf::net
