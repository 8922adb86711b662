// The versions of the Debian packages that the file was built with.
#pragma once

#include <string_view>

namespace disttf {

// The version of a package, as Debian numbers it: "3.0.17-1~deb12u2". Empty: the package was not
// installed through dpkg when the build was configured, or is not in cmake/linked_packages.cmake.
[[nodiscard]] std::string_view debian_version_of(std::string_view package);

}  // namespace disttf
