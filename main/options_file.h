// An options file of DC/OS' TensorFlow package, as `render` and `launch` take it: its text, and its
// job_context as training flags.
//
// Every error is a std::invalid_argument with one sentence: "--options: ", the option, its value,
// what is allowed.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace disttf {

// At most a MiB, so that a wrong file does not fill the memory.
[[nodiscard]] std::string read_options_text(const std::string& path);

// A key of job_context as the training flag of that name. What the command line has given stays.
void set_training_flag(CLI::App& app, const std::string& key, const std::string& value);

}  // namespace disttf
