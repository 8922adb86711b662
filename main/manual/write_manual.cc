// disttf_manual DIRECTORY DATE: writes the man pages into the directory, which is there.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "main/manual/manual.h"
#include "main/version.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: disttf_manual DIRECTORY DATE\n", stderr);
    return 2;
  }
  try {
    for (const disttf::ManualPage& page : disttf::manual_pages(disttf::kVersion, argv[2])) {
      const std::filesystem::path path = std::filesystem::path(argv[1]) / page.name;
      // flush() reports a full disk, which the destructor would hide.
      if (!(std::ofstream(path) << page.text).flush()) {
        throw std::runtime_error("cannot write " + path.string());
      }
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "disttf_manual: %s\n", error.what());
    return 1;
  }
  return 0;
}
