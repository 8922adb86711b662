// Takes the positional words of a command off the front of its arguments.
//
// Each function that may fail throws std::invalid_argument with one sentence.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace disttf {

// Whether `arguments` begin with a word, which is not empty.
[[nodiscard]] bool begins_with_word(const std::vector<std::string>& arguments);
// Removes the first word. REQUIRES: there is one.
[[nodiscard]] std::string take_first(std::vector<std::string>& arguments);

// The same of a command that takes no second one; `what` is its name in the message.
[[nodiscard]] std::string take_only_word(std::vector<std::string>& arguments,
                                         const std::string& command, const std::string& what);

// Removes the runs of plot and show: each a --train_dir, a file of its records or of metrics. Fails
// with `missing` if there is none, and if there are more than `most`.
[[nodiscard]] std::vector<std::string> take_runs(const std::string& command, const char* missing,
                                                 std::size_t most,
                                                 std::vector<std::string>& arguments);

// Removes a place of ls and cp. `name` is that of the word.
[[nodiscard]] std::string take_place(const char* command, const char* name,
                                     std::vector<std::string>& arguments);
inline constexpr const char* kPlaceAbout =
    "A path, or a URL like s3://bucket/prefix or gs://bucket/prefix";

}  // namespace disttf
