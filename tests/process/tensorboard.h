// The real TensorBoard, as tests ask it.
#pragma once

#include <filesystem>
#include <string>

#include "tests/process/process_test.h"

namespace disttf::test_process {

// The python3 of an environment that has the package tensorboard: .ci/tools makes one.
[[nodiscard]] std::filesystem::path python_with_tensorboard();
// Whether it is there; `why`: why not.
[[nodiscard]] bool is_tensorboard_installed(std::string& why);
// What python is to run so that what it shows of `directory`, once that has come to the end of a
// run of so many steps, is JSON in `file`. `loader`: "fast" or "slow", see read_tensorboard.py.
[[nodiscard]] Words words_to_show(const std::string& loader, const std::filesystem::path& directory,
                                  int steps, const std::filesystem::path& file);

}  // namespace disttf::test_process
