// The versions of disttf and of what it is linked with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace disttf {

// What `disttf --version` prints: the project's version and commit.
extern const std::string_view kVersion;

// The text of `disttf --version --verbose`: the compiler and the libraries in the program, so that
// a user can check whether a known flaw of a library affects it.
struct Library {
  std::string name;
  // As its makers number it; empty: it has no number.
  std::string version;
  // The Debian package that it comes from.
  std::string package;
};

// All libraries that are linked or compiled into the program, by name, except uPlot: the page's own
// file names it.
[[nodiscard]] std::vector<Library> libraries();

// Lines: the version, wire and checkpoint formats, the compiler, the libraries with the versions of
// their Debian packages, whose last part counts the security fixes of Debian.
[[nodiscard]] std::string version_in_full();

// The version of a package that the file was built with, as Debian numbers it: "3.0.17-1~deb12u2".
// Empty: the package was not installed through dpkg when the build was configured, or is not in
// cmake/linked_packages.cmake.
[[nodiscard]] std::string_view debian_version_of(std::string_view package);

}  // namespace disttf
