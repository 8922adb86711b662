#include "main/manage_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "main/environment.h"
#include "main/flag_values.h"
#include "main/options_file.h"
#include "net/wire/text.h"
#include "roles/launch/shell/control_verbs.h"
#include "roles/monitor/core/step_sampling.h"

namespace disttf {
namespace {

using roles::ManageVerb;

constexpr const char* kManagement = "Managing a launch";
constexpr std::uint64_t kMostWorkers = 1000;

// Takes the name of a task, and rejects a malformed one before any launch is asked.
std::string take_task(const std::string& verb, std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front().starts_with("-")) {
    throw std::invalid_argument(verb +
                                ": the task is missing; a name such as worker:1 or worker-1");
  }
  std::string name;
  try {
    name = net::task_name(net::task_from_name(arguments.front()));
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(verb + ": " + error.what());
  }
  arguments.erase(arguments.begin());
  return name;
}

roles::ManageOptions take_pods_words(std::vector<std::string>& arguments) {
  constexpr const char* kAllowed = "list, restart TASK or replace TASK";
  if (arguments.empty() || arguments.front().starts_with("-")) {
    throw std::invalid_argument(std::string("pods: the action is missing; ") + kAllowed);
  }
  const std::string verb = arguments.front();
  arguments.erase(arguments.begin());
  if (verb == "list") {
    return {.verb = ManageVerb::kPodsList};
  }
  if (verb != "restart" && verb != "replace") {
    throw std::invalid_argument("pods: " + net::quoted(verb) + " is not " + kAllowed);
  }
  return {.verb = verb == "restart" ? ManageVerb::kPodsRestart : ManageVerb::kPodsReplace,
          .task = take_task("pods " + verb, arguments)};
}

// `--watch` without a number is `--watch 2`.
void complete_watch(std::vector<std::string>& arguments) {
  const auto is_number = [](const std::string& word) {
    return !word.empty() && (net::is_digit(word.front()) || word.front() == '.');
  };
  for (auto each = arguments.begin(); each != arguments.end(); ++each) {
    const bool is_watch = *each == "--watch" || *each == "-w";
    if (is_watch && (each + 1 == arguments.end() || (each + 1)->starts_with("-"))) {
      // insert() invalidates `each`; its result is the new word, which the loop then skips.
      each = arguments.insert(each + 1, "2");
    } else if (is_watch && !is_number(*(each + 1))) {
      throw std::invalid_argument("--watch: " + net::quoted(*(each + 1)) +
                                  " is not a number of seconds above 0");
    }
  }
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  constexpr double kMost = 86'400;  // a day stands for "no limit"
  return std::chrono::milliseconds(
      // At least 1 ms: 0 would repeat without a pause.
      std::max<std::int64_t>(1, std::llround(std::min(seconds, kMost) * 1000)));
}

}  // namespace

// These commands are the last ones of the enumeration.
bool is_management(Command command) noexcept { return command >= Command::kStatus; }

void add_management_flags(CLI::App& app, Command command, Flags& flags) {
  // For the help; the words are taken off the command line before the flags are read.
  if (command == Command::kPods) {
    app.add_option("ACTION")
        ->description("list, restart TASK or replace TASK")
        ->check(one_of({"list", "restart", "replace"}));
    app.footer(
        "\nrestart  SIGTERM, and a new process at the same address\n"
        "replace  kill -9, and a new process, of a worker at a new address");
  } else if (command == Command::kStatus) {
    app.add_option("--watch,-w", flags.watch_s,
                   "`status`: repeat every SECONDS (2 if omitted) until the run ends [once]")
        ->type_name("[SECONDS]")
        ->check(number_above_zero())
        ->group(kManagement);
    app.footer(
        "\ndisttf status --watch      redrawn; without a terminal prints changed rows\n"
        "disttf status --json");
  } else if (command == Command::kTop) {
    app.add_option("--every", flags.every_s, "`top`: seconds between updates")
        ->type_name("SECONDS")
        ->check(number_above_zero())
        ->capture_default_str()
        ->group(kManagement);
    app.add_flag("--once", flags.once, "`top`: print once")
        ->transform(boolean())
        ->group(kManagement);
    app.footer(
        "\ndisttf top                  until the run ends, or q\n"
        "disttf top --once --json    one JSON object");
  } else if (command == Command::kTrace) {
    app.add_option("--steps,-n", flags.trace_steps, "`trace`: number of steps")
        ->type_name("N")
        ->transform(whole_number(1, roles::StepWindow::kMost))
        ->capture_default_str()
        ->group(kManagement);
    app.add_option("--output,-o", flags.trace_output,
                   "`trace`: output file [TRAIN_DIR/traces/trace-STEP.json, or a temporary one]")
        ->type_name("FILE.json")
        ->group(kManagement);
    app.footer(
        "\ndisttf trace -o trace.json      then open the file at ui.perfetto.dev\n"
        "kill -USR2 PID                  of the chief: the same of 50 steps, without a launch");
  } else if (command == Command::kPage) {
    app.footer(
        "\nThe link works once; the browser that opens it can control the run. The launch needs "
        "--page.");
  } else if (command == Command::kLogs) {
    app.add_option("TASK")->description("worker:1, or worker-1");
    app.add_flag("--follow,-f", flags.follow, "`logs`: follow the output until the run ends")
        ->transform(boolean())
        ->group(kManagement);
  } else if (command == Command::kUpdate) {
    app.add_option("--workers,-w", flags.update_workers,
                   "`update`: new number of workers, not below the old one")
        ->type_name("N")
        ->transform(whole_number(1, kMostWorkers))
        ->group(kManagement);
    app.add_option("--options", flags.launch.options_file, "`update`: new options file")
        ->type_name("FILE")
        ->group(kManagement);
  }
  add_control_flag(app, flags.launch.control, kManagement,
                   "control socket of the launch [that of this user's only running launch]");
  app.add_flag("--json", flags.json, "print JSON")->transform(boolean())->group(kManagement);
}

roles::ManageOptions take_management_words(Command command, std::vector<std::string>& arguments) {
  switch (command) {
    case Command::kEndpoints:
      return {.verb = ManageVerb::kEndpoints};
    case Command::kLogs:
      return {.verb = ManageVerb::kLogs, .task = take_task("logs", arguments)};
    case Command::kPods:
      return take_pods_words(arguments);
    case Command::kUpdate:
      return {.verb = ManageVerb::kUpdate};
    case Command::kTrace:
      return {.verb = ManageVerb::kTrace};
    case Command::kTop:
      return {.verb = ManageVerb::kTop};
    case Command::kPage:
      return {.verb = ManageVerb::kPage};
    default:
      complete_watch(arguments);
      return {.verb = ManageVerb::kStatus};
  }
}

void complete(roles::ManageOptions& options, const Flags& flags,
              const net::Environment& environment) {
  options.follow = flags.follow;
  options.json = flags.json;
  options.once = flags.once;
  options.trace_steps = static_cast<std::uint32_t>(flags.trace_steps);
  options.trace_output = flags.trace_output;
  options.variables = terminal_variables(environment);
  if (options.verb == ManageVerb::kTop) {
    // top repeats by default, status only with --watch.
    options.every = milliseconds_of(flags.every_s);
  } else if (flags.watch_s > 0) {
    options.every = milliseconds_of(flags.watch_s);
  }
  options.socket = flags.launch.control;
  options.directory = control_directory(environment);
  options.update.workers = flags.update_workers;
  if (!flags.launch.options_file.empty()) {
    // The text is sent, not the path: the launch may run in another folder.
    options.update.options = read_options_text(flags.launch.options_file);
  }
  if (options.verb == ManageVerb::kUpdate && !options.update.workers && !options.update.options) {
    throw std::invalid_argument("update: the change is missing; --workers N or --options FILE");
  }
}

}  // namespace disttf
