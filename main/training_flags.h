// The training flags: what they mean together, and how launch and render hand them on.
//
// Pure functions, but for a look at this CPU.
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

// This CPU has no instruction set of that name. Throws as above, always.
[[noreturn]] void refuse_isa(const std::string& name);

// Of a cluster that is yet to be made: how many trainers it may have. Throws as above.
[[nodiscard]] std::size_t most_trainers(const Flags& flags, std::size_t workers, bool chief);

// Throws as above.
void check_checkpoint_flags(const Flags& flags);

// The given options as arguments for tasks: "--train_steps=100".
[[nodiscard]] std::vector<std::string> arguments_for_children(const CLI::App& app);
// The same for the processes that a server trains with, whose patience is the driver's.
[[nodiscard]] std::vector<std::string> arguments_for_tasks(const CLI::App& app);

}  // namespace disttf
