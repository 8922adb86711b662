// The words of plot and show: runs, each by its --train_dir, a file of its records or of metrics.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace disttf {

// Removes the words from the front of `arguments`. Throws std::invalid_argument if there is none,
// with `missing`, or more than `most`.
[[nodiscard]] std::vector<std::string> take_runs(const std::string& command, const char* missing,
                                                 std::size_t most,
                                                 std::vector<std::string>& arguments);

}  // namespace disttf
