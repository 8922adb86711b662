// A secret for the tasks of a test on several machines.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace disttf::test_process {

// Writes mnist.secret, readable by its owner alone, and returns its path.
inline std::string write_secret(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "mnist.secret";
  std::ofstream(path) << std::string(32, 's') << "\n";
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  return path.string();
}

}  // namespace disttf::test_process
