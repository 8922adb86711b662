#include "main/command_words.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>

#include "main/help_text.h"
#include "main/version.h"
#include "net/wire/text.h"

namespace disttf {
namespace {

std::string command_names() {
  std::string names;
  for (const CommandInfo& info : commands()) {
    names += (names.empty() ? "" : ", ") + std::string(info.name);
  }
  return names;
}

}  // namespace

std::string top_level_help() {
  CLI::App app("disttf trains a model with parameter servers: one static file, any cluster.",
               "disttf");
  app.set_version_flag("--version", std::string(kVersion), "Print the version and exit");
  for (const CommandInfo& info : commands()) {
    app.add_subcommand(info.name, info.description);
  }
  app.add_subcommand("help", "Print a command's help, as in disttf help launch");
  app.footer(
      "\nTry: disttf launch --workers 2 --ps 1\n"
      "Without a command the role comes from --job_name or TF_CONFIG, as with train.\n"
      "disttf COMMAND --help lists a command's usual flags, --help-all all of them.");
  return app.help();
}

std::string help_of(std::span<const std::string> words) {
  const auto is_flag = [](const std::string& word) { return word.starts_with("-"); };
  // Flags may come first, as in help --help-all launch.
  const auto name = std::ranges::find_if_not(words, is_flag);
  if (name == words.end() || *name == "help") {
    return top_level_help();
  }
  // A copy: take_command() removes the word, and help_asked_for() looks at the words as given.
  std::vector<std::string> command{*name};
  Flags flags;
  const auto app = make_app(take_command(command), flags);
  return help_asked_for(*app, words).value_or(app->help());
}

Command take_command(std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front().starts_with("-")) {
    return Command::kTrain;
  }
  for (const CommandInfo& info : commands()) {
    if (arguments.front() == info.name) {
      arguments.erase(arguments.begin());
      return info.command;
    }
  }
  throw std::invalid_argument("\"" + arguments.front() + "\" is not a command; one of " +
                              command_names());
}

roles::CheckpointCommand take_checkpoint_words(std::vector<std::string>& arguments) {
  const auto fail = [](const std::string& sentence) {
    throw std::invalid_argument(sentence + " (see disttf checkpoint --help)");
  };
  roles::CheckpointCommand command;
  if (arguments.empty()) {
    fail("checkpoint: the action is missing; ls, verify or show");
  }
  const auto action = roles::checkpoint_action_from_name(arguments.front());
  if (!action) {
    fail("checkpoint: " + net::quoted(arguments.front()) + " is not ls, verify or show");
  }
  if (arguments.size() < 2 || arguments[1].empty() || arguments[1].starts_with("-")) {
    fail("checkpoint " + arguments.front() + ": the directory is missing");
  }
  command.action = *action;
  command.directory = arguments[1];
  arguments.erase(arguments.begin(), arguments.begin() + 2);
  return command;
}

Command take_resolve_word(std::vector<std::string>& arguments) {
  // resolve's own two flags may stand before the task's name.
  const auto word = std::ranges::find_if(
      arguments, [](const std::string& each) { return each != "--print" && each != "--json"; });
  if (word == arguments.end() || word->starts_with("-")) {
    return Command::kTrain;
  }
  static const std::map<std::string, Command, std::less<>> kTasks = {
      {"ps", Command::kPs},
      {"worker", Command::kWorker},
      {"chief", Command::kChief},
      {"evaluator", Command::kEvaluator},
      {"train", Command::kTrain}};
  const auto found = kTasks.find(*word);
  if (found != kTasks.end()) {
    arguments.erase(word);
    return found->second;
  }
  if (word != arguments.begin()) {
    return Command::kTrain;  // perhaps the flag's value: --print true
  }
  throw std::invalid_argument(
      "resolve: " + net::quoted(*word) +
      " is not ps, worker, chief, evaluator or train (see disttf resolve --help)");
}

}  // namespace disttf
