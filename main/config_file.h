// The file of --config: flags, one a line, in TOML; and behind them, where it is a recipe, a model:
//
//   train_steps = 6000
//   learning_rate = 0.003
//
//   [[layer]]
//   type = "dense"
//   units = 10
//
// The layers are as in a model file (main/model_file.h), and --model takes a recipe as well as such
// a file. In turn a recipe's layers count like a --model of this file: the command line wins.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace disttf {

// Adds the option `names` ("--config") to `app`, which reads such a file.
CLI::Option* add_config_file(CLI::App& app, const std::string& names);

}  // namespace disttf
