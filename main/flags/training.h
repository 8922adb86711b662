// The settings of a run as flags, and what they say together.
//
// Pure functions, except that they query this CPU.
#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <optional>
#include <string>

#include "main/setting_flags.h"
#include "run/run_config.h"

namespace disttf {

struct TrainingFlags {
  WrittenSettings settings;
  std::optional<std::size_t> max_workers;  // nullopt: as many as are listed

  // The model and the settings of training.
  void add_model(CLI::App& app);
  // The same, with augmentation and elastic workers.
  void add_to(CLI::App& app);

  // `has_own_data`: the data decides inputs and outputs of the model. Throws std::invalid_argument
  // with one sentence: the flag, its value, what is allowed.
  [[nodiscard]] roles::RunConfig run_config(std::size_t ps, std::size_t trainers,
                                            bool has_own_data) const;

  // The most trainers that a cluster to be started may have. Throws as above.
  [[nodiscard]] std::size_t most_trainers(std::size_t workers, bool chief) const;
};

// Reports that this CPU lacks the named instruction set. Always throws as above.
[[noreturn]] void refuse_isa(const std::string& name);

}  // namespace disttf
