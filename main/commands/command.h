// A command of disttf: one file of this folder, with its flags, words, checks and action, and a row
// of the registry (registry.h).
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "main/commands/action.h"
#include "main/commands/texts.h"
#include "main/commands/words.h"
#include "main/environment.h"
#include "main/flags/process.h"
#include "run/process/attempt.h"
#include "run/process/log.h"

namespace disttf {

struct Invocation {
  roles::LogOptions log;
  std::vector<std::string> warnings;     // logged once the log is set up
  std::string summary;                   // logged likewise, at level info; empty: none
  bool confines = true;                  // --confine
  std::vector<roles::Attempt> attempts;  // --debug_attempts, of an action with a sandbox
  std::unique_ptr<Action> action;
};

// A command line whose flags have been parsed.
struct ParsedLine {
  CLI::App& app;                                    // has parsed `flags`
  std::span<const std::string> given;               // the whole line
  std::vector<std::string> flags;                   // without positional words and the COMMAND
  std::optional<std::vector<std::string>> program;  // the COMMAND after "--"
  const Environment& environment;
  Invocation& invocation;  // has the log's options; an action sets what else it needs
};

// What the completion offers as the next positional word: what the option of the word lists, a task
// of a running launch, or nothing.
enum class NextWord : std::uint8_t { kListed, kTask, kNone };

// The values of one command's flags, which its app parses into members, and their meaning.
class Command {
 public:
  virtual ~Command() = default;

  // The flags that name a file with values of the others.
  [[nodiscard]] virtual const char* config_names() const { return "--config"; }
  // Adds the flags to `app`, and for the help options without a hyphen for the positional words.
  virtual void add_options(CLI::App& app) = 0;
  // Adds those that stand last in the help.
  virtual void add_last_options(CLI::App& app) { log_.add_to(app); }

  // Whether a COMMAND, the words of another program, may follow "--".
  [[nodiscard]] virtual bool takes_program() const { return false; }

  // Removes the positional words from `arguments`, before the flags are parsed. Throws
  // std::invalid_argument with one sentence.
  virtual void take_words(const CLI::App& /*app*/, std::vector<std::string>& /*arguments*/) {}

  // `words`: the positional words before it.
  [[nodiscard]] virtual NextWord next_word(std::span<const std::string> /*words*/) const {
    return NextWord::kListed;
  }

  // Checks the flags and words against one another. Throws std::invalid_argument: the flag, its
  // value, what is allowed.
  [[nodiscard]] virtual std::unique_ptr<Action> action(const ParsedLine& line) = 0;

  [[nodiscard]] roles::LogOptions log_options() const { return log_.options(); }

 private:
  LogFlags log_;
};

// A command whose positional words may stand before, between and behind its flags.
class WordCommand : public Command {
 public:
  void take_words(const CLI::App& app, std::vector<std::string>& arguments) final;

 protected:
  // Removes the words from the front of `arguments`; flags follow them. Throws as take_words().
  virtual void take(std::vector<std::string>& arguments) = 0;
};

struct CommandRow {
  const char* name;
  const char* description;
  const char* words = "";         // of its SYNOPSIS, before the flags
  const char* about;              // a description beyond that of --help
  std::vector<Example> examples;  // at least one; disttf(1) shows the first
  std::vector<FileText> files = {};
  std::vector<Reads> reads = {};
  std::vector<const char*> see_also = {};  // names of commands
  std::unique_ptr<Command> (*make)();
};

// For CommandRow::make.
template <typename T>
std::unique_ptr<Command> make_command() {
  return std::make_unique<T>();
}

}  // namespace disttf
