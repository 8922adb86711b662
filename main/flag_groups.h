// Groups of flags that several commands share. Each function adds one group to a command, under its
// title in --help.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>

#include "main/flags.h"

namespace disttf {

// One day stands for "no limit"; sums of a few days still fit every type that holds a time.
inline constexpr std::uint64_t kDaySeconds = 86'400;

// Adds a timeout in seconds, at least `least`.
void add_timeout(CLI::App& app, const char* name, std::uint64_t& value, std::uint64_t least,
                 const char* description);
void add_heartbeat_timeout(CLI::App& app, Flags& flags);
void add_timeouts(CLI::App& app, Flags& flags);

// The model and the settings of training.
void add_model_settings(CLI::App& app, Flags& flags);
// The same, with augmentation and elastic workers.
void add_training(CLI::App& app, Flags& flags);
void add_checkpoints(CLI::App& app, Flags& flags);
// Evaluation, results, TensorBoard.
void add_output(CLI::App& app, Flags& flags);
void add_on_finish(CLI::App& app, Flags& flags);
// The data set and its source; `command` decides which of these flags apply.
void add_data(CLI::App& app, Command command, Flags& flags);
void add_transport(CLI::App& app, Command command, Flags& flags);
void add_threads(CLI::App& app, Flags& flags);
void add_log(CLI::App& app, Flags& flags);
void add_confine(CLI::App& app, Flags& flags);
// Fault injection.
void add_testing(CLI::App& app, Flags& flags);

}  // namespace disttf
