// The groups of flags that several commands share: each function adds one to a command's, with its
// title in --help.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>

#include "main/flags.h"

namespace disttf {

// A day is as good as for ever, and the sum of a few still fits everywhere.
inline constexpr std::uint64_t kDaySeconds = 86'400;

// Seconds of at least `least`.
void add_timeout(CLI::App& app, const char* name, std::uint64_t& value, std::uint64_t least,
                 const char* description);
void add_heartbeat_timeout(CLI::App& app, Flags& flags);
void add_timeouts(CLI::App& app, Flags& flags);

// What is computed, and by whom.
void add_model_settings(CLI::App& app, Flags& flags);
// The same, with augmentation and elastic workers.
void add_training(CLI::App& app, Flags& flags);
void add_checkpoints(CLI::App& app, Flags& flags);
// Evaluation, results, TensorBoard.
void add_output(CLI::App& app, Flags& flags);
void add_on_finish(CLI::App& app, Flags& flags);
// Which data, and where they are had; `command` takes a part of it.
void add_data(CLI::App& app, Command command, Flags& flags);
void add_transport(CLI::App& app, Command command, Flags& flags);
void add_threads(CLI::App& app, Flags& flags);
void add_log(CLI::App& app, Flags& flags);
void add_confine(CLI::App& app, Flags& flags);
// What makes trouble on purpose.
void add_testing(CLI::App& app, Flags& flags);

}  // namespace disttf
