// The text of `disttf --version --verbose`: the compiler and the libraries in the program, so that
// a user can check whether a known flaw of a library affects it.
#pragma once

#include <string>
#include <vector>

namespace disttf {

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

}  // namespace disttf
