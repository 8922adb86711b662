// What the commands that manage a running launch have in common.
#pragma once

#include <CLI/App.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "main/commands/command.h"
#include "roles/launch/shell/manage.h"

namespace disttf {

inline constexpr const char* kManagement = "Managing a launch";

class ManagementCommand : public WordCommand {
 public:
  void add_options(CLI::App& app) final;
  [[nodiscard]] NextWord next_word(std::span<const std::string> words) const override {
    return words.empty() ? NextWord::kListed : NextWord::kNone;
  }
  std::unique_ptr<Action> action(const ParsedLine& line) final;

 protected:
  explicit ManagementCommand(roles::ManageVerb verb) : options_{.verb = verb} {}

  // Adds the flags that the command does not share with the others.
  virtual void add_own_options(CLI::App& /*app*/) {}
  void take(std::vector<std::string>& /*arguments*/) override {}
  // Sets what follows from its own flags. Throws std::invalid_argument.
  virtual void complete(roles::ManageOptions& /*options*/) {}

  roles::ManageOptions options_;
};

// Removes the name of a task from the front of `arguments`, and rejects a malformed one before any
// launch is asked. `verb` begins the message. Throws std::invalid_argument.
[[nodiscard]] std::string take_task(const std::string& verb, std::vector<std::string>& arguments);

[[nodiscard]] std::chrono::milliseconds milliseconds_of(double seconds);

}  // namespace disttf
