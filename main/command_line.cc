#include "main/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "main/commands/registry.h"
#include "main/completion.h"
#include "main/flags/program.h"
#include "main/help_text.h"
#include "main/libraries.h"
#include "main/parse_flags.h"
#include "main/version.h"
#include "roles/launch/shell/control_client.h"
#include "run/outcome.h"

namespace disttf {
namespace {

// The output of `disttf --help`.
std::string top_level_help() {
  CLI::App app("disttf trains a model with parameter servers: one static file, any cluster.",
               "disttf");
  app.set_version_flag("--version", std::string(kVersion), "Print the version and exit");
  for (const CommandRow& row : commands()) {
    app.add_subcommand(row.name, row.description);
  }
  app.add_subcommand("help", "Print a command's help, as in disttf help launch");
  app.footer(
      "\nTry: disttf launch --workers 2 --ps 1\n"
      "Without a command the role comes from --job_name or TF_CONFIG, as with train.\n"
      "disttf COMMAND --help lists a command's usual flags, --help-all all of them.");
  return app.help();
}

// The output of `disttf help WORD...`: the help of the command that the first word names; without
// words the general help. Ignores further words, as in `help pods restart`. Throws
// std::invalid_argument for an unknown command.
std::string help_of(std::span<const std::string> words) {
  const auto is_flag = [](const std::string& word) { return word.starts_with("-"); };
  // Flags may come first, as in help --help-all launch.
  const auto name = std::ranges::find_if_not(words, is_flag);
  if (name == words.end() || *name == "help") {
    return top_level_help();
  }
  // A copy: take_command() removes the word, and help_asked_for() looks at the words as given.
  std::vector<std::string> command{*name};
  const CommandApp app(take_command(command));
  return help_asked_for(app, words).value_or(app.help());
}

std::unique_ptr<Action> print_version(std::span<const std::string> words) {
  if (words.empty()) {
    return std::make_unique<Print>("disttf " + std::string(kVersion) + "\n");
  }
  if (words.size() == 1 && words.front() == "--verbose") {
    return std::make_unique<Print>(version_in_full());
  }
  throw std::invalid_argument("--version: takes only --verbose, not \"" + words.back() + "\"");
}

// The output that needs no command: the version, the help, or, with neither arguments nor a task's
// environment, the help with exit code 2. Null: a command is to be parsed.
std::unique_ptr<Action> print_without_command(const std::vector<std::string>& arguments,
                                              const Environment& environment) {
  // Without arguments, a container of an orchestrator is a task if TF_CONFIG or TFMesos describes
  // one; at a terminal the user needs the help.
  if (arguments.empty()) {
    return net::is_task_environment(environment)
               ? nullptr
               : std::make_unique<Print>(top_level_help(), roles::kUsage);
  }
  if (arguments.front() == "--version") {
    return print_version(std::span(arguments).subspan(1));
  }
  if (arguments.front() == "--help" || arguments.front() == "-h" ||
      arguments.front() == "--help-all") {
    return std::make_unique<Print>(top_level_help());
  }
  if (arguments.front() == "help") {
    return std::make_unique<Print>(help_of(std::span(arguments).subspan(1)));
  }
  // The completion scripts of the shells call this command.
  if (arguments.front() == kCompleteCommand) {
    // A function, so that only words that name a task cost a connection to the running launches.
    const auto tasks = [&environment](const std::string& socket) {
      return roles::running_tasks(socket, control_directory(environment));
    };
    return std::make_unique<Print>(complete_words(std::span(arguments).subspan(1), tasks));
  }
  return nullptr;
}

}  // namespace

Invocation parse_command_line(std::span<const std::string> given, const Environment& environment) {
  std::vector<std::string> arguments(given.begin(), given.end());
  Invocation invocation;
  // Before take_command(), which takes a leading flag such as --version for one of train.
  if (std::unique_ptr<Action> print = print_without_command(arguments, environment)) {
    invocation.action = std::move(print);
    return invocation;
  }
  const CommandRow& row = take_command(arguments);
  CommandApp app(row);
  Command& command = app.command();
  // The words after -- belong to the COMMAND.
  const auto own_end =
      command.takes_program() ? std::ranges::find(arguments, "--") : arguments.end();
  // Before the positional words are checked: --help works without them.
  if (auto help = help_asked_for(app, {arguments.begin(), own_end})) {
    invocation.action = std::make_unique<Print>(*std::move(help));
    return invocation;
  }
  // The parser of flags allows no word without a flag.
  command.take_words(app, arguments);
  std::optional<std::vector<std::string>> program;
  if (command.takes_program()) {
    program = take_launched_command(arguments, row.name);
  }
  if (auto help = parse_flags(app, arguments)) {
    invocation.action = std::make_unique<Print>(*std::move(help));
    return invocation;
  }
  invocation.log = command.log_options();
  invocation.action = command.action({.app = app,
                                      .given = given,
                                      .flags = std::move(arguments),
                                      .program = std::move(program),
                                      .environment = environment,
                                      .invocation = invocation});
  return invocation;
}

}  // namespace disttf
