// Where things lie that the process ring needs. Compiled into paths.cc alone, so that all other
// sources are compiled alike in every checkout, and ccache knows them there.
#pragma once

#include <filesystem>
#include <string>

namespace disttf::test_process {

// The file under test.
[[nodiscard]] const std::string& disttf_binary();
// The program that serves the data set's files with bad manners.
[[nodiscard]] const std::string& mirror_binary();
// The root of the source tree.
[[nodiscard]] const std::filesystem::path& source_directory();
// A folder in the build tree for data sets, shared by all tests.
[[nodiscard]] const std::filesystem::path& test_data_directory();

}  // namespace disttf::test_process
