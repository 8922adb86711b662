// The file of --config: flags in TOML, one a line. A recipe has the layers of a model after them:
//
//   train_steps = 6000
//   learning_rate = 0.003
//
//   [[layer]]
//   type = "dense"
//   units = 10
//
// The layers are as in a model file (main/model_file.h), and --model accepts a recipe as well. A
// recipe's layers act like --model with the recipe's path: the command line wins.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace disttf {

// Adds the option `names` ("--config"), which reads such a file, to `app`.
CLI::Option* add_config_file(CLI::App& app, const std::string& names);

}  // namespace disttf
