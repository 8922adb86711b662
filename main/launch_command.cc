#include "main/launch_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <stdexcept>

#include "main/flag_values.h"
#include "main/program_flags.h"
#include "net/wire/text.h"
#include "roles/launch/shell/program_command.h"
#include "roles/process/gpus.h"

namespace disttf {
namespace {

// A bound against typing errors.
constexpr std::uint64_t kMostGpusOfWorker = 64;

std::optional<std::set<std::size_t>> workers_from(const std::string& text, std::size_t workers) {
  // nullopt: all tasks, including ps, which have no numbers in this list.
  if (text == "*") {
    return std::nullopt;
  }
  std::set<std::size_t> found;
  for (std::string& each : split_at_commas({text})) {
    if (!whole_number(0, workers - 1)(each).empty()) {
      throw std::invalid_argument("--worker_logs: " + net::quoted(text) +
                                  " is not *, nor workers between commas, each from 0 to " +
                                  std::to_string(workers - 1));
    }
    found.insert(std::stoul(each));
  }
  return found;
}

}  // namespace

void add_launch_of_a_command(CLI::App& app, Flags& flags) {
  app.add_option("--worker_logs", flags.worker_logs,
                 "workers whose output is shown, as in `1,2`; `*`: all tasks, including ps")
      ->type_name("N,...|*")
      ->capture_default_str()
      ->group(kCommandGroup);
  app.add_option("--initializer", flags.initializer,
                 "run in each task before COMMAND; must exit with 0")
      ->type_name("WORDS")
      ->group(kCommandGroup);
  app.add_option("--finalizer", flags.finalizer,
                 "run in each task after COMMAND, whatever its exit code")
      ->type_name("WORDS")
      ->group(kCommandGroup);
  app.add_option(
         "--gpus_per_worker", flags.gpus_per_worker,
         "number of [GPUs](operations.md#gpus) of each worker, which sees no others; ps see none "
         "[all tasks see all]")
      ->type_name("N")
      ->transform(whole_number(1, kMostGpusOfWorker))
      ->group(kCommandGroup);
  app.add_flag("--share_gpus", flags.share_gpus,
               "give several workers the same GPUs where there are too few")
      ->transform(boolean())
      ->group(kCommandGroup);
  app.footer(
      "\ndisttf launch -w 2 -s 1 -- COMMAND ... runs any program as each of these tasks. In its "
      "words\n"
      "{ps_hosts}, {worker_hosts}, {job_name} and {task_index} are filled in, {{ and }} are "
      "braces;\n"
      "TF_CONFIG and TFMESOS_... say the same. Of the flags above it takes -w, -s, --insecure,\n"
      "--log_format and its own group. With --program the COMMAND is your own training program\n"
      "instead, started by each worker, and all flags but those of models and data apply.");
}

void check_launch_flags(const CLI::App& app, const Flags& flags, bool has_command) {
  // Flags that apply with and without a COMMAND.
  static const std::set<std::string> kOfBoth = {"ps",       "workers",    "config",  "help",
                                                "help-all", "log_format", "insecure"};
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty() ||
        kOfBoth.contains(option->get_lnames().front())) {
      continue;
    }
    const std::string name = "--" + option->get_lnames().front();
    const bool is_of_command = option->get_group() == kCommandGroup;
    if (is_of_command && !has_command) {
      throw std::invalid_argument(name + ": needs a COMMAND after --");
    }
    const bool assigns_gpus = name == "--gpus_per_worker" || name == "--share_gpus";
    if (is_of_command && flags.program && !assigns_gpus) {
      throw std::invalid_argument(name + ": has no effect with --program");
    }
    if (flags.program) {
      continue;
    }
    // Rejected rather than ignored: a training flag before -- looks as if the program received it.
    if (!is_of_command && has_command) {
      throw std::invalid_argument(
          name + ": has no effect on a COMMAND; put the COMMAND's own flags after --");
    }
  }
}

roles::GpuOptions gpu_options(const Flags& flags, const Environment& environment) {
  if (flags.gpus_per_worker == 0) {
    if (flags.share_gpus) {
      throw std::invalid_argument("--share_gpus: true has no effect without --gpus_per_worker");
    }
    return {};
  }
  return {.per_worker = flags.gpus_per_worker,
          .share = flags.share_gpus,
          .list = roles::find_gpus(environment),
          .has_device_order = environment.contains(kDeviceOrder),
          .has_cublas_workspace = environment.contains(kCublasWorkspace)};
}

roles::ProgramOptions program_options(const Flags& flags, const std::vector<std::string>& command,
                                      const std::string& search_path) {
  // First: workers_from() needs at least one.
  if (flags.launch_workers == 0) {
    throw std::invalid_argument(
        "--workers: must be at least 1; the launch exits when the workers do (got 0)");
  }
  const auto words_of = [](const char* field, const std::string& text) {
    return text.empty() ? std::vector<std::string>() : roles::split_words(field, text);
  };
  roles::ProgramOptions options;
  options.ps = flags.launch_ps;
  options.workers = flags.launch_workers;
  options.command = command;
  options.initializer = words_of("--initializer", flags.initializer);
  options.finalizer = words_of("--finalizer", flags.finalizer);
  options.worker_logs = workers_from(flags.worker_logs, options.workers);
  options.search_path = search_path.empty() ? kUsualPath : search_path;
  roles::validate(options);
  return options;
}

}  // namespace disttf
