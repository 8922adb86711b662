// disttf predict MODEL INPUT...: predictions of a trained model.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "main/flags.h"
#include "roles/predict/shell/predict_command.h"

namespace disttf {

void add_predict_flags(CLI::App& app, Flags& flags);

// Takes the words before the first flag; "-", standard input, is a word. Throws
// std::invalid_argument if the model is missing.
[[nodiscard]] std::vector<std::string> take_predict_words(std::vector<std::string>& arguments);

// `words`: as above. `data`: the data set that --dataset or --data names, if any. Throws
// std::invalid_argument unless the examples come from exactly one source.
[[nodiscard]] roles::PredictOptions predict_options(const std::vector<std::string>& words,
                                                    const Flags& flags, roles::DataOptions data);

}  // namespace disttf
