// The flags of a user's own program that computes the gradients: `disttf worker --program --
// COMMAND`, of every command that trains.
//
// Pure functions.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace disttf {

// How long a program may take.
struct ProgramTimeouts {
  std::uint64_t step_s = 60;  // 0: no limit
  std::uint64_t end_s = 600;  // 0: no limit

  void add_to(CLI::App& app, const char* group);
};

// How a trainer runs its program.
struct ProgramRules {
  bool spare = true;
  ProgramTimeouts timeouts;
  std::uint64_t check_gradients = 0;  // 0: never

  void add_to(CLI::App& app, const char* group);
  // All of them as words.
  [[nodiscard]] std::vector<std::string> arguments() const;
  // Those that `app` was given.
  [[nodiscard]] std::vector<std::string> given_arguments(const CLI::App& app) const;
};

struct ProgramFlags {
  bool program = false;
  ProgramRules rules;
  // The socket between the supervisor of the program and the task; -1: this is no such task.
  int fd = -1;

  void add_to(CLI::App& app);
  // --program_fd, which a supervisor passes to its task.
  void add_fd(CLI::App& app);

  // Throws std::invalid_argument with one sentence if --program and COMMAND do not belong together.
  // `command` is the name of the command.
  void check_command(const std::string& command, bool has_command) const;
  // Throws likewise if a given flag has no effect: one of this group without --program, or another
  // with it.
  void check_effects(const CLI::App& app) const;

  // The flags of --program for each trainer of a launch. Empty without --program.
  [[nodiscard]] std::vector<std::string> arguments() const;
};

// Removes "--" and the words after it from the arguments. nullopt: there is no "--". Throws
// std::invalid_argument if no word follows. `command` is the name of the command.
[[nodiscard]] std::optional<std::vector<std::string>> take_launched_command(
    std::vector<std::string>& arguments, const std::string& command);

}  // namespace disttf
