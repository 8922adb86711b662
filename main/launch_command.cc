#include "main/launch_command.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <stdexcept>
#include <utility>

#include "main/commands/launch_options.h"
#include "main/options_file.h"
#include "main/parse_flags.h"
#include "main/render/dcos_options.h"

namespace disttf {

void check_program_of_launch(const CLI::App& app, const ProgramFlags& program,
                             const LaunchFlags& launch, bool has_command) {
  program.check_command("launch", has_command);
  if (program.program && launch.evaluator) {
    throw std::invalid_argument(
        "--evaluator: not allowed with --program; it evaluates only built-in models");
  }
  program.check_effects(app);
}

namespace {

// Sets what the command line leaves open: the counts and limits in `flags`, the training flags of
// `app`. Returns a note for each option that has no effect.
std::vector<std::string> take_options(CLI::App& app, LaunchFlags& flags, const std::string& text) {
  const render::DcosOptions options = render::read_dcos_options(text);
  std::vector<std::string> notes = options.warnings;
  // Only the command line wins over the file; a default does not.
  const auto is_given = [&app](const char* flag) { return app.get_option(flag)->count() > 0; };
  const auto take_count = [&](const char* flag, const char* name, std::size_t& place,
                              std::size_t count) {
    if (!is_given(flag)) {
      place = count;
    } else if (place != count) {
      notes.push_back("--options: " + std::string(name) + " is " + std::to_string(count) +
                      " and has no effect because " + flag + " is given");
    }
  };
  take_count("--ps", "parameter_server.count", flags.ps, options.ps.count);
  take_count("--workers", "worker.count", flags.workers, options.workers.count);
  const auto take_limits = [&](const std::string& prefix, roles::TaskLimits& limits,
                               const render::DcosTasks& tasks) {
    if (!is_given(("--" + prefix + "cpus").c_str())) {
      limits.cpus = tasks.cpus;
    }
    if (!is_given(("--" + prefix + "memory").c_str())) {
      limits.memory_mib = tasks.memory_mib;
    }
  };
  take_limits("", flags.trainer_limits, options.workers);
  take_limits("ps_", flags.ps_limits, options.ps);
  // The directory of the file comes after its job_context: set_training_flag() keeps the first
  // value, so train_dir of the job_context wins.
  for (const auto& [key, value] : options.flags) {
    set_training_flag(app, key, value);
  }
  if (options.tensorboard) {
    notes.emplace_back(
        "--options: service.use_tensorboard has no effect, because launch starts no other program; "
        "`tensorboard --logdir` shows service.shared_filesystem");
  }
  if (!options.train_dir.empty()) {
    set_training_flag(app, "train_dir", options.train_dir);
  }
  return notes;
}

// The options of a launch from its words, its options file, and the updates received since.
roles::LaunchOptions reconsidered(const std::vector<std::string>& words,
                                  const std::vector<std::string>& command,
                                  const roles::LaunchUpdate& update) {
  // Fresh values for every update: leftovers of an earlier one could not be distinguished from
  // given flags.
  Flags flags;
  const std::unique_ptr<CLI::App> app = make_app(Command::kLaunch, flags);
  // Parsed again, so that an update passes the checks of a command line.
  static_cast<void>(parse_flags(*app, words));
  if (update.workers) {
    CLI::Option* const workers = app->get_option("--workers");
    // The words may have a value already.
    workers->clear();
    workers->add_result(std::to_string(*update.workers));
    // CLI11 has parsed already, so the added value reaches `flags` only by this call, which also
    // checks it.
    workers->run_callback();
  }
  std::vector<std::string> notes;
  if (update.options) {
    notes = take_options(*app, flags.launch, *update.options);
  }
  // After the options file, whose limits have passed no flag's check.
  flags.launch.check_limits();
  check_program_of_launch(*app, flags.program, flags.launch, !command.empty());
  roles::LaunchOptions options =
      launch_options(*app, {.launch = flags.launch, .run = flags.run, .program = flags.program},
                     flags.launch.ps, flags.launch.workers, command);
  options.notes = std::move(notes);
  return options;
}

// The options with the GPUs of their trainers. Throws std::invalid_argument if these are too few.
roles::LaunchOptions with_gpus(roles::LaunchOptions options, const roles::GpuOptions& gpus) {
  options.gpus = gpus;
  roles::check_gpus(gpus, options.workers + (options.chief ? 1 : 0));
  return options;
}

}  // namespace

roles::LaunchOptions manageable_launch(const std::vector<std::string>& words,
                                       const std::vector<std::string>& command, const Flags& flags,
                                       const net::Environment& environment) {
  // Once: trainers that an update adds get others of the same list.
  const roles::GpuOptions gpus = flags.launch.gpu_options(environment);
  roles::LaunchUpdate given;
  if (!flags.launch.options_file.empty()) {
    // The text is kept, not the path: an update of the workers must not pick up a file that has
    // changed since the start.
    given.options = read_options_text(flags.launch.options_file);
  }
  roles::LaunchOptions options = with_gpus(reconsidered(words, command, given), gpus);
  check_launched_program(options, environment);
  options.control = flags.launch.control_options(environment);
  options.page = flags.page.options(flags.run.metrics.files);
  options.secret = flags.run.network.credentials.of_launch(environment);
  options.reconsider = [words, command, given, gpus](const roles::LaunchUpdate& update) {
    roles::LaunchUpdate all = update;
    // An update of the workers alone keeps the options of the start.
    if (!all.options) {
      all.options = given.options;
    }
    try {
      return with_gpus(reconsidered(words, command, all), gpus);
      // The launch reports std::invalid_argument to the client of the update and continues as it
      // was.
    } catch (const CLI::ParseError& error) {
      throw std::invalid_argument(error.what());
    }
  };
  return options;
}

}  // namespace disttf
