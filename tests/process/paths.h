// Paths that the process tests need. Compiled into paths.cc alone, so that all other sources
// compile identically in every checkout, and ccache finds them.
#pragma once

#include <filesystem>
#include <string>

namespace disttf::test_process {

// Returns the path of the executable under test.
[[nodiscard]] const std::string& disttf_binary();
// Returns the path of test_mirror, which serves the data set's files with faults.
[[nodiscard]] const std::string& mirror_binary();
// Returns the root of the source tree.
[[nodiscard]] const std::filesystem::path& source_directory();
// Returns a folder in the build tree for data sets, shared by all tests.
[[nodiscard]] const std::filesystem::path& test_data_directory();

}  // namespace disttf::test_process
