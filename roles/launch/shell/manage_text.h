// The answers of a control address as text, except that to status (status_watch.h).
//
// A pure function.
#pragma once

#include <string>
#include <string_view>

#include "roles/launch/shell/manage.h"

namespace disttf::roles {

// `json`: the launch's answer. Throws Failure (kError) if it has another form.
[[nodiscard]] std::string text_of(ManageVerb verb, std::string_view json);

}  // namespace disttf::roles
