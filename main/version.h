// The version as `disttf --version` prints it: that of the project, and of which commit it is.
#pragma once

#include <string_view>

namespace disttf {

extern const std::string_view kVersion;

}  // namespace disttf
