#include "tests/process/process.h"

namespace disttf::test_process {

const std::string& disttf_binary() {
  static const std::string kPath = DISTTF_BINARY;
  return kPath;
}

const std::string& mirror_binary() {
  static const std::string kPath = DISTTF_TEST_MIRROR;
  return kPath;
}

const std::filesystem::path& source_directory() {
  static const std::filesystem::path kPath = DISTTF_SOURCE_DIR;
  return kPath;
}

const std::filesystem::path& test_data_directory() {
  static const std::filesystem::path kPath = DISTTF_TEST_DATA_DIR;
  return kPath;
}

}  // namespace disttf::test_process
