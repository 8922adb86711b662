// What `disttf --version --verbose` says of the file besides its version: what it was built by and
// of. For whoever asks whether a flaw that a library was found to have is in it.
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

// All that are linked into the file or compiled into it, by name, but for uPlot, which the page
// brings along as its own file says.
[[nodiscard]] std::vector<Library> libraries();

// Lines: the version, wire and checkpoint formats, the compiler, the libraries with the versions of
// their Debian packages, whose last part counts the flaws that Debian has mended.
[[nodiscard]] std::string version_in_full();

}  // namespace disttf
