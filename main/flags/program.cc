#include "main/flags/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <stdexcept>

#include "main/flag_values.h"
#include "main/flags/flag_group.h"
#include "run/run_config.h"
#include "run/setting.h"

namespace disttf {
namespace {

// Whether the flag concerns the data, the model or the loss, which a user's program has itself.
bool is_of_built_in_models(const CLI::App& app, const CLI::Option& option) {
  static const std::set<std::string> kOthers = {"model",           "hidden_units",  "loss",
                                                "label_smoothing", "compute_dtype", "test_shifts",
                                                "print_classes"};
  const std::string& name = option.get_lnames().front();
  const auto& settings = roles::settings();
  return option.get_group() == app.get_option("--dataset")->get_group() || kOthers.contains(name) ||
         std::ranges::any_of(settings, [&name](const roles::Setting& setting) {
           return setting.group == roles::SettingGroup::kAugmentation && setting.name == name;
         });
}

}  // namespace

void ProgramFlags::add_to(CLI::App& app) {
  FlagGroup add(app, kProgramGroup);
  add.toggle("--program", program,
             "train your own program, the COMMAND after `--`, which computes the "
             "[gradients](program_protocol.md); a ps ignores it");
  rules.add_to(app, kProgramGroup);
}

void ProgramRules::add_to(CLI::App& app, const char* group) {
  FlagGroup add(app, group);
  add.toggle("--program_spare", spare,
             "keep a second copy of the program started, which takes over at once if the first "
             "one is killed [true]");
  timeouts.add_to(app, group);
  add.number("--check_gradients", check_gradients, "N", 0, roles::kMaxCount,
             "let the program compute the gradient of every Nth step twice, and warn if the "
             "bits differ; 0: never");
}

void ProgramFlags::add_fd(CLI::App& app) {
  app.add_option("--program_fd", fd)->group(kHiddenGroup);
}

void ProgramTimeouts::add_to(CLI::App& app, const char* group) {
  FlagGroup add(app, group);
  add.number("--program_timeout_secs", step_s, "SECONDS", 0, kDaySeconds,
             "seconds without a gradient after which the program counts as hung and is started "
             "again, or 20 times its usual time if that is longer; ten times that until it joins, "
             "for its first gradient and for an evaluation; 0: no limit");
  add.number("--program_end_timeout_secs", end_s, "SECONDS", 0, kDaySeconds,
             "seconds that the program may take to exit after the last step; 0: no limit");
}

void ProgramFlags::check_command(const std::string& command, bool has_command) const {
  // A supervised task has no COMMAND: its supervisor runs the program.
  if (program && !has_command && fd < 0) {
    throw std::invalid_argument("--program: COMMAND is missing; it comes last, as in disttf " +
                                command + " --program -- python3 train.py");
  }
  // A launch runs any program as its tasks, too.
  if (has_command && !program && command != "launch") {
    throw std::invalid_argument(command + ": a COMMAND after -- needs --program before it");
  }
}

void ProgramFlags::check_effects(const CLI::App& app) const {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) {
      continue;
    }
    const std::string name = "--" + option->get_lnames().front();
    const bool is_of_program = option->get_group() == kProgramGroup;
    if (!program && is_of_program && name != "--program") {
      throw std::invalid_argument(name + ": needs --program");
    }
    // Rejected rather than ignored: a flag of the data before -- looks as if the program received
    // it.
    if (program && is_of_built_in_models(app, *option)) {
      throw std::invalid_argument(
          name +
          ": has no effect with --program, because the program has its own model and data; put the "
          "program's own flags after COMMAND");
    }
  }
}

std::vector<std::string> ProgramFlags::arguments() const {
  if (!program) {
    return {};
  }
  std::vector<std::string> words = rules.arguments();
  words.insert(words.begin(), "--program");
  return words;
}

std::vector<std::string> ProgramRules::arguments() const {
  return {std::string("--program_spare=") + (spare ? "true" : "false"),
          "--program_timeout_secs=" + std::to_string(timeouts.step_s),
          "--program_end_timeout_secs=" + std::to_string(timeouts.end_s),
          "--check_gradients=" + std::to_string(check_gradients)};
}

std::vector<std::string> ProgramRules::given_arguments(const CLI::App& app) const {
  std::vector<std::string> words = arguments();
  std::erase_if(words, [&app](const std::string& word) {
    return app.get_option(word.substr(0, word.find('=')))->count() == 0;
  });
  return words;
}

std::optional<std::vector<std::string>> take_launched_command(std::vector<std::string>& arguments,
                                                              const std::string& command) {
  // The first one: the COMMAND may have a -- of its own.
  const auto separator = std::find(arguments.begin(), arguments.end(), "--");
  if (separator == arguments.end()) {
    return std::nullopt;
  }
  std::vector<std::string> words(separator + 1, arguments.end());
  arguments.erase(separator, arguments.end());
  if (words.empty()) {
    throw std::invalid_argument(command + ": COMMAND is missing after --");
  }
  return words;
}

}  // namespace disttf
