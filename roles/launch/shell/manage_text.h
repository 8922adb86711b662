// The answers of a control address as people read them, but for that to status (watch.h).
//
// A pure function.
#pragma once

#include <string>
#include <string_view>

#include "roles/launch/shell/manage.h"

namespace disttf::roles {

// `json`: what a launch has answered. Throws Failure (kError) where it is something else.
[[nodiscard]] std::string text_of(ManageVerb verb, std::string_view json);

}  // namespace disttf::roles
