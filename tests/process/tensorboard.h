// The real TensorBoard, for tests.
#pragma once

#include <filesystem>
#include <string>

#include "tests/process/process_test.h"

namespace disttf::test_process {

// Returns the python3 of the environment with tensorboard that .ci/tools makes.
[[nodiscard]] std::filesystem::path python_with_tensorboard();
// Returns whether it is installed; `why`: why not.
[[nodiscard]] bool is_tensorboard_installed(std::string& why);
// Returns the arguments of python that write what TensorBoard shows of `directory` to `file` as
// JSON, once it has reached the end of a run of that many steps. `loader`: "fast" or "slow", see
// read_tensorboard.py.
[[nodiscard]] Words words_to_show(const std::string& loader, const std::filesystem::path& directory,
                                  int steps, const std::filesystem::path& file);

}  // namespace disttf::test_process
