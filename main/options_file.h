// An options file of DC/OS' TensorFlow package, for `render` and `launch`: its text, and its
// job_context as training flags.
//
// Every error is a std::invalid_argument with one sentence: "--options: ", the option, its value,
// what is allowed.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace disttf {

// Reads the file; rejects one above a MiB, so that a wrong file does not fill the memory.
[[nodiscard]] std::string read_options_text(const std::string& path);

// Sets the training flag that a key of job_context names, unless the command line has set it.
void set_training_flag(CLI::App& app, const std::string& key, const std::string& value);

}  // namespace disttf
