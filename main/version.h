// The version that `disttf --version` prints: the project's version and commit.
#pragma once

#include <string_view>

namespace disttf {

extern const std::string_view kVersion;

}  // namespace disttf
