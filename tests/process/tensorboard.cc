#include "tests/process/tensorboard.h"

#include <cstdlib>

#include "tests/process/process.h"

namespace disttf::test_process {

std::filesystem::path python_with_tensorboard() {
  const char* const given = std::getenv("DISTTF_TENSORBOARD");
  return given != nullptr
             ? std::filesystem::path(given)
             : source_directory() / "build" / "tools" / "tensorboard" / "bin" / "python";
}

bool is_tensorboard_installed(std::string& why) {
  why = python_with_tensorboard().string() +
        " is not there: .ci/tools makes it; or DISTTF_TENSORBOARD names one";
  return std::filesystem::exists(python_with_tensorboard());
}

Words words_to_show(const std::string& loader, const std::filesystem::path& directory, int steps,
                    const std::filesystem::path& file) {
  return {(source_directory() / "tests" / "process" / "read_tensorboard.py").string(), loader,
          directory.string(), std::to_string(steps), file.string()};
}

}  // namespace disttf::test_process
