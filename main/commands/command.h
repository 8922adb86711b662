// A command of disttf: one file of this folder, with its flags, words, checks and action, and a row
// of the registry (registry.h).
#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "main/commands/texts.h"
#include "main/environment.h"
#include "main/flags/process.h"
#include "net/resolvers/resolvers.h"
#include "run/process/attempt.h"
#include "run/process/log.h"
#include "run/process/sandbox.h"
#include "run/process/system_calls.h"

namespace disttf {

// What a command line selects, ready to run.
class Action {
 public:
  virtual ~Action() = default;

  // Returns the exit code of the process. Throws roles::Failure and other exceptions; each message
  // is a sentence. Called at most once, in the sandbox.
  [[nodiscard]] virtual int run() = 0;

  // Selects the filter of system calls. A command is the default: a new action gets its filter.
  [[nodiscard]] virtual roles::ProcessKind kind() const { return roles::ProcessKind::kCommand; }

  // The files, folders and ports that the process may use; nullopt: any. Tasks and network services
  // have a sandbox, since these follow from their flags. A launcher's tasks sandbox themselves, and
  // commands end soon.
  //
  // Creates missing folders that the process will write to, because the sandbox cannot allow what
  // does not exist.
  [[nodiscard]] virtual std::optional<roles::SandboxPolicy> sandbox(
      const net::Environment& /*environment*/) const {
    return std::nullopt;
  }
};

// Calls a function with options. Tests look at the options.
template <typename Options>
class RunWith : public Action {
 public:
  using Function = int (*)(const Options&);

  RunWith(Options given, Function function, roles::ProcessKind kind)
      : options(std::move(given)), function_(function), kind_(kind) {}

  [[nodiscard]] int run() override { return function_(options); }
  [[nodiscard]] roles::ProcessKind kind() const override { return kind_; }

  Options options;

 private:
  Function function_;
  roles::ProcessKind kind_;
};

// `function` may be a lambda without captures.
template <typename Options>
[[nodiscard]] std::unique_ptr<Action> run_with(
    Options options, std::type_identity_t<typename RunWith<Options>::Function> function,
    roles::ProcessKind kind = roles::ProcessKind::kCommand) {
  return std::make_unique<RunWith<Options>>(std::move(options), function, kind);
}

// Prints a text. The exit code is 0 for --help and --version, 2 without arguments.
class Print : public Action {
 public:
  explicit Print(std::string given_text, int given_exit_code = 0)
      : text(std::move(given_text)), exit_code(given_exit_code) {}

  // Does not check for write errors: finish_output() reports them.
  [[nodiscard]] int run() override;

  std::string text;
  int exit_code;
};

// Takes the positional words of a command off the front of its arguments.
//
// Each function that may fail throws std::invalid_argument with one sentence.

// Whether `arguments` begin with a word, which is not empty.
[[nodiscard]] bool begins_with_word(const std::vector<std::string>& arguments);
// Removes the first word. REQUIRES: there is one.
[[nodiscard]] std::string take_first(std::vector<std::string>& arguments);

// The same of a command that takes no second one; `what` is its name in the message.
[[nodiscard]] std::string take_only_word(std::vector<std::string>& arguments,
                                         const std::string& command, const std::string& what);

// Removes the runs of plot and show: each a --train_dir, a file of its records or of metrics. Fails
// with `missing` if there is none, and if there are more than `most`.
[[nodiscard]] std::vector<std::string> take_runs(const std::string& command, const char* missing,
                                                 std::size_t most,
                                                 std::vector<std::string>& arguments);

// Removes a place of ls and cp. `name` is that of the word.
[[nodiscard]] std::string take_place(const char* command, const char* name,
                                     std::vector<std::string>& arguments);
inline constexpr const char* kPlaceAbout =
    "A path, or a URL like s3://bucket/prefix or gs://bucket/prefix";

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
