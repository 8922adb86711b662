#include "main/program_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <stdexcept>

#include "main/flag_groups.h"
#include "main/flag_values.h"
#include "roles/run/run_config.h"
#include "roles/run/setting.h"

namespace disttf {
namespace {

std::string name_of_command(Command command) {
  return std::ranges::find(commands(), command, &CommandInfo::command)->name;
}

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

// Rejects flags of this group where there is no program, and flags without effect on one.
void check_effects(const CLI::App& app, const Flags& flags) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) {
      continue;
    }
    const std::string name = "--" + option->get_lnames().front();
    const bool is_of_program = option->get_group() == kProgramGroup;
    if (!flags.program && is_of_program && name != "--program") {
      throw std::invalid_argument(name + ": needs --program");
    }
    // Rejected rather than ignored: a flag of the data before -- looks as if the program received
    // it.
    if (flags.program && is_of_built_in_models(app, *option)) {
      throw std::invalid_argument(
          name +
          ": has no effect with --program, because the program has its own model and data; put the "
          "program's own flags after COMMAND");
    }
  }
}

}  // namespace

void add_program_flags(CLI::App& app, Flags& flags) {
  app.add_flag("--program", flags.program,
               "train your own program, the COMMAND after `--`, which computes the "
               "[gradients](program_protocol.md); a ps ignores it")
      ->transform(boolean())
      ->group(kProgramGroup);
  app.add_flag("--program_spare", flags.program_spare,
               "keep a second copy of the program started, which takes over at once if the first "
               "one is killed [true]")
      ->transform(boolean())
      ->group(kProgramGroup);
  add_program_timeouts(app, flags, kProgramGroup);
  app.add_option("--check_gradients", flags.check_gradients,
                 "let the program compute the gradient of every Nth step twice, and warn if the "
                 "bits differ; 0: never")
      ->type_name("N")
      ->transform(whole_number(0, roles::kMaxCount))
      ->capture_default_str()
      ->group(kProgramGroup);
}

void add_program_timeouts(CLI::App& app, Flags& flags, const char* group) {
  app.add_option(
         "--program_timeout_secs", flags.program_timeout_s,
         "seconds without a gradient after which the program counts as hung and is started "
         "again, or 20 times its usual time if that is longer; ten times that until it joins, "
         "for its first gradient and for an evaluation; 0: no limit")
      ->type_name("SECONDS")
      ->transform(whole_number(0, kDaySeconds))
      ->capture_default_str()
      ->group(group);
  app.add_option("--program_end_timeout_secs", flags.program_end_timeout_s,
                 "seconds that the program may take to exit after the last step; 0: no limit")
      ->type_name("SECONDS")
      ->transform(whole_number(0, kDaySeconds))
      ->capture_default_str()
      ->group(group);
}

bool takes_command(Command command) {
  return command == Command::kLaunch || command == Command::kPs || command == Command::kWorker ||
         command == Command::kChief || command == Command::kTrain || command == Command::kResolve ||
         command == Command::kVerify;
}

std::optional<std::vector<std::string>> take_launched_command(std::vector<std::string>& arguments,
                                                              Command command) {
  // The first one: the COMMAND may have a -- of its own.
  const auto separator = std::find(arguments.begin(), arguments.end(), "--");
  if (separator == arguments.end()) {
    return std::nullopt;
  }
  std::vector<std::string> words(separator + 1, arguments.end());
  arguments.erase(separator, arguments.end());
  if (words.empty()) {
    throw std::invalid_argument(name_of_command(command) + ": COMMAND is missing after --");
  }
  return words;
}

void check_program_flags(const CLI::App& app, const Flags& flags, Command command,
                         bool has_command) {
  const std::string name = name_of_command(command);
  // A supervised task has no COMMAND: its supervisor runs the program.
  if (flags.program && !has_command && flags.program_fd < 0) {
    throw std::invalid_argument("--program: COMMAND is missing; it comes last, as in disttf " +
                                name + " --program -- python3 train.py");
  }
  if (has_command && !flags.program && command != Command::kLaunch) {
    throw std::invalid_argument(name + ": a COMMAND after -- needs --program before it");
  }
  if (flags.program && flags.existing_servers) {
    throw std::invalid_argument(
        "--program: not allowed with --existing_servers, whose servers train only built-in models");
  }
  if (flags.program && flags.launch_evaluator) {
    throw std::invalid_argument(
        "--evaluator: not allowed with --program; it evaluates only built-in models");
  }
  check_effects(app, flags);
}

std::vector<std::string> program_arguments(const Flags& flags) {
  if (!flags.program) {
    return {};
  }
  return {"--program", std::string("--program_spare=") + (flags.program_spare ? "true" : "false"),
          "--program_timeout_secs=" + std::to_string(flags.program_timeout_s),
          "--program_end_timeout_secs=" + std::to_string(flags.program_end_timeout_s),
          "--check_gradients=" + std::to_string(flags.check_gradients)};
}

}  // namespace disttf
