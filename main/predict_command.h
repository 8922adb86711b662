// disttf predict MODEL INPUT...: what a trained model says of examples.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "main/flags.h"
#include "roles/predict/shell/predict_command.h"

namespace disttf {

void add_predict_flags(CLI::App& app, Flags& flags);

// Takes the words before the first flag ("-" is a word: standard input). Throws
// std::invalid_argument where the model is missing.
[[nodiscard]] std::vector<std::string> take_predict_words(std::vector<std::string>& arguments);

// `words`: as above. `data`: what --dataset or --data name, if they do. Throws
// std::invalid_argument where it is not clear what is asked.
[[nodiscard]] roles::PredictOptions predict_options(const std::vector<std::string>& words,
                                                    const Flags& flags, roles::DataOptions data);

}  // namespace disttf
