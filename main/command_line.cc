#include "main/command_line.h"

#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "main/commands/registry.h"
#include "main/completion.h"
#include "main/environment.h"
#include "main/flags/program.h"
#include "main/help_text.h"
#include "main/parse_flags.h"
#include "main/version.h"
#include "net/tls/secrets.h"
#include "net/waiting/descriptor.h"
#include "roles/launch/shell/control_client.h"
#include "run/outcome.h"
#include "run/process/attempt.h"
#include "run/process/confinement.h"
#include "run/process/log.h"
#include "run/process/sandbox.h"
#include "storage/store/shell/storage.h"

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

namespace {

Environment read_environment() {
  Environment environment;
  for (const char* name : environment_names()) {
    if (const char* value = std::getenv(name); value != nullptr) {
      environment.emplace(name, value);
    }
  }
  // Not the variable: Slurm, for one, passes on that of the submitting machine.
  utsname names{};
  if (uname(&names) == 0) {
    environment.insert_or_assign("HOSTNAME", names.nodename);
  }
  return environment;
}

int fail(int exit_code, const char* sentence) {
  roles::log_error(sentence);
  return exit_code;
}

// The log format for errors in the flags, which are reported before the flags are parsed.
roles::LogFormat wanted_format(const std::vector<std::string>& arguments) {
  // The words after -- belong to another program.
  const auto end = std::ranges::find(arguments, "--");
  // The name may be spelled with hyphens, as that of every flag.
  const std::vector<std::string> words = normalize_arguments(
      std::span(arguments.begin(), end), [](std::string_view) { return false; });
  const auto flag = std::ranges::find(words, "--log_format");
  const bool is_json = std::ranges::find(words, "--log_format=json") != words.end() ||
                       (flag != words.end() && flag + 1 != words.end() && *(flag + 1) == "json");
  return is_json ? roles::LogFormat::kJson : roles::LogFormat::kText;
}

// Applies seccomp and Landlock. Must run before a second thread starts, so that both cover all
// threads.
void enter_sandbox(const Action& action, const Environment& environment) {
  // seccomp first: confine() sets no_new_privs, without which the kernel refuses Landlock. An old
  // kernel is logged, not refused: the sandbox is a second line of defence.
  if (!roles::confine(action.kind()).filters_calls) {
    roles::log_debug("seccomp is unavailable: system calls are not filtered");
  }
  const std::optional<roles::SandboxPolicy> policy = action.sandbox(environment);
  if (policy && !roles::enforce_sandbox(*policy).is_in_force) {
    roles::log_debug("Landlock is unavailable: files and ports are not restricted");
  }
}

bool starts_programs(roles::ProcessKind kind) {
  return kind == roles::ProcessKind::kLauncher || kind == roles::ProcessKind::kPrograms;
}

// Erases the secret from the environment. A launcher keeps it: its tasks inherit the variable.
void keep_secrets(roles::ProcessKind kind) {
  if (starts_programs(kind)) {
    static_cast<void>(roles::keep_memory_private());  // its tasks need the variable
  } else if (char* const secret = std::getenv(net::kSecretVariable)) {
    // The secret has been read already. /proc/PID/environ shows this memory, so erase it.
    explicit_bzero(secret, std::strlen(secret));
  }
}

// Enters the sandbox, tries --debug_attempts, then runs the action. Returns the exit code of the
// process. REQUIRES: no second thread runs yet. Throws roles::Failure and other exceptions; each
// message is a sentence.
int carry_out(const Invocation& invocation, const Environment& environment) {
  // The order below: the secret is erased before anything of a peer is read, and the sandbox is in
  // force before the role opens its first socket or file.
  const roles::ProcessKind kind = invocation.action->kind();
  // As process 1 of a container, or as a child subreaper, a task inherits orphans. The kernel reaps
  // them where SIGCHLD is ignored. Launchers reap their children themselves.
  if (!starts_programs(kind)) std::signal(SIGCHLD, SIG_IGN);
  keep_secrets(kind);
  if (invocation.confines) enter_sandbox(*invocation.action, environment);
  // After the sandbox is in force, because the attempts test it.
  for (const roles::Attempt& each : invocation.attempts) roles::log_warning(try_out(each));
  return invocation.action->run();
}

}  // namespace

int run_command_line(const std::vector<std::string>& arguments) {
  const std::string command = arguments.empty() ? "" : arguments.front();
  // Provisional: errors in the flags need a log before the flags are parsed.
  roles::set_up_log({.format = wanted_format(arguments), .task = command, .name_task = false});
  try {
    const Environment environment = read_environment();
    if (!value_of(environment, net::kSecretVariable).empty()) {
      static_cast<void>(roles::keep_memory_private());  // for every command, also one without TLS
    }
    roles::configure_stores(store_environment(environment));
    Invocation invocation = parse_command_line(arguments, environment);
    const auto term = environment.find("TERM");
    invocation.log.can_redraw =
        term != environment.end() && !term->second.empty() && term->second != "dumb";
    // Only now the task's name and level are known; the warnings of parsing follow in their format.
    roles::set_up_log(invocation.log);
    for (const std::string& warning : invocation.warnings) {
      roles::log_warning(warning);
    }
    if (!invocation.summary.empty()) {
      roles::log_info(invocation.summary);
    }
    return carry_out(invocation, environment);
    // The order counts: std::system_error must come before std::exception, and a Failure has the
    // exit code that its thrower chose.
  } catch (const roles::Failure& failure) {
    return fail(failure.exit_code(), failure.what());
  } catch (const std::invalid_argument& error) {
    return fail(roles::kUsage, error.what());
  } catch (const std::bad_alloc&) {
    // A constant sentence: building one would need the memory that is missing.
    return fail(roles::kError, roles::kNoMemory);
  } catch (const std::system_error& error) {
    return fail(roles::kError, (error.what() + net::descriptor_hint(error.code())).c_str());
  } catch (const std::exception& error) {
    return fail(roles::kError, error.what());
  }
}

}  // namespace disttf
