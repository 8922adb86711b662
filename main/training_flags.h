// The training flags: their combined meaning, and how launch and render pass them on.
//
// Pure functions, except that they query this CPU.
#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "main/flags.h"
#include "roles/run/run_config.h"

namespace disttf {

// Throws std::invalid_argument with one sentence: the flag, its value, what is allowed.
[[nodiscard]] roles::RunConfig run_config(const Flags& flags, std::size_t ps, std::size_t trainers);

// Reports that this CPU lacks the named instruction set. Always throws as above.
[[noreturn]] void refuse_isa(const std::string& name);

// The most trainers that a cluster to be started may have. Throws as above.
[[nodiscard]] std::size_t most_trainers(const Flags& flags, std::size_t workers, bool chief);

// Checks the checkpoint flags. Throws as above.
void check_checkpoint_flags(const Flags& flags);

// The given options as arguments for tasks: "--train_steps=100".
[[nodiscard]] std::vector<std::string> arguments_for_children(const CLI::App& app);
// The same for the processes that a server starts; the driver sets their timeouts.
[[nodiscard]] std::vector<std::string> arguments_for_tasks(const CLI::App& app);

}  // namespace disttf
