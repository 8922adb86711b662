#include <CLI/CLI.hpp>
#include <memory>
#include <stdexcept>
#include <utility>

#include "main/commands/launch_flags.h"
#include "main/commands/registry.h"
#include "main/commands/task_actions.h"
#include "main/flags/addresses.h"
#include "main/flags/program.h"
#include "main/flags/run.h"
#include "main/options_file.h"
#include "main/parse_flags.h"
#include "main/render/dcos_options.h"
#include "roles/launch/shell/program_launcher.h"

namespace disttf {
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

// The options with the GPUs of their trainers. Throws std::invalid_argument if these are too few.
roles::LaunchOptions with_gpus(roles::LaunchOptions options, const roles::GpuOptions& gpus) {
  options.gpus = gpus;
  roles::check_gpus(gpus, options.workers + (options.chief ? 1 : 0));
  return options;
}

class LaunchCommand : public Command {
 public:
  void add_options(CLI::App& app) override {
    launch_.add_to(app);
    page_.add_to(app);
    program_.add_to(app);
    launch_.add_of_command(app);
    run_.add_to(app, CredentialFlags::Of::kSeveralTasks);
    add_metrics_flags(app, run_.metrics);
  }
  void add_last_options(CLI::App& app) override {
    Command::add_last_options(app);
    run_.add_last(app);
  }

  [[nodiscard]] bool takes_program() const override { return true; }

  std::unique_ptr<Action> action(const ParsedLine& line) override {
    check_addresses(run_.metrics, page_);
    check_program(line.app, line.program.has_value());
    log_as_launch(line.invocation.log);
    line.invocation.confines = run_.confine;
    check_launch_flags(line.app, program_, line.program.has_value());
    // Before the download: programs of others have no data sets.
    if (line.program && !program_.program) {
      return run_programs(*line.program, line.environment);
    }
    if (run_.data.download_only) {
      return run_download(run_.data.options(line.environment));
    }
    roles::LaunchOptions options = manageable(line);
    line.invocation.warnings = options.notes;
    return run_launch(std::move(options));
  }

 private:
  // Throws std::invalid_argument if --program and the other flags do not belong together.
  void check_program(const CLI::App& app, bool has_command) const {
    program_.check_command("launch", has_command);
    if (program_.program && launch_.evaluator) {
      throw std::invalid_argument(
          "--evaluator: not allowed with --program; it evaluates only built-in models");
    }
    program_.check_effects(app);
  }

  // launch -- COMMAND
  [[nodiscard]] std::unique_ptr<Action> run_programs(const std::vector<std::string>& command,
                                                     const Environment& environment) const {
    roles::ProgramOptions options = launch_.program_options(command, environment);
    options.secret = run_.network.credentials.of_launch(environment);
    options.gpus = launch_.gpu_options(environment);
    roles::check_gpus(options.gpus, options.workers);
    return run_with(std::move(options), roles::run_program_launcher, roles::ProcessKind::kPrograms);
  }

  // The launch of the line and of the options file that it names. The line wins over the file.
  // Throws std::invalid_argument.
  [[nodiscard]] roles::LaunchOptions manageable(const ParsedLine& line) const {
    // Once: trainers that an update adds get others of the same list.
    const roles::GpuOptions gpus = launch_.gpu_options(line.environment);
    const std::vector<std::string> command = line.program.value_or(std::vector<std::string>());
    roles::LaunchUpdate given;
    if (!launch_.options_file.empty()) {
      // The text is kept, not the path: an update of the workers must not pick up a file that has
      // changed since the start.
      given.options = read_options_text(launch_.options_file);
    }
    roles::LaunchOptions options = with_gpus(reconsidered(line.flags, command, given), gpus);
    check_launched_program(options, line.environment);
    options.control = launch_.control_options(line.environment);
    options.page = page_.options(run_.metrics.files);
    options.secret = run_.network.credentials.of_launch(line.environment);
    options.reconsider = [words = line.flags, command, given,
                          gpus](const roles::LaunchUpdate& update) {
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

  // The options of a launch from its words, its options file, and the updates received since.
  static roles::LaunchOptions reconsidered(const std::vector<std::string>& words,
                                           const std::vector<std::string>& command,
                                           const roles::LaunchUpdate& update) {
    // Fresh values for every update: leftovers of an earlier one could not be distinguished from
    // given flags.
    CommandApp app(launch_command());
    auto& fresh = dynamic_cast<LaunchCommand&>(app.command());
    // Parsed again, so that an update passes the checks of a command line.
    static_cast<void>(parse_flags(app, words));
    if (update.workers) {
      CLI::Option* const workers = app.get_option("--workers");
      // The words may have a value already.
      workers->clear();
      workers->add_result(std::to_string(*update.workers));
      // CLI11 has parsed already, so the added value reaches the member only by this call, which
      // also checks it.
      workers->run_callback();
    }
    std::vector<std::string> notes;
    if (update.options) {
      notes = take_options(app, fresh.launch_, *update.options);
    }
    // After the options file, whose limits have passed no flag's check.
    fresh.launch_.check_limits();
    fresh.check_program(app, !command.empty());
    roles::LaunchOptions options =
        launch_options(app, {.launch = fresh.launch_, .run = fresh.run_, .program = fresh.program_},
                       fresh.launch_.ps, fresh.launch_.workers, command);
    options.notes = std::move(notes);
    return options;
  }

  LaunchFlags launch_;
  PageFlags page_;
  ProgramFlags program_;
  RunFlags run_;
};

}  // namespace

CommandRow launch_command() {
  return {
      .name = "launch",
      .description = "Train on this machine: starts ps and workers as processes",
      .about =
          "Starts --ps parameter servers and --workers workers as processes of this machine, "
          "trains, prints the result and exits. Restarts lost tasks. A program after -- runs "
          "as every task instead: {job_name} and {task_index} in its words, and TF_CONFIG, "
          "give its role. With --program it is your own training program: each worker "
          "starts it and takes its gradients.",
      .examples = {{"disttf launch --workers 2 --ps 1", "Train on MNIST."},
                   {"disttf launch --dataset digits --train_steps 500 --train_dir run",
                    "Train on the built-in digits; checkpoints stay in run."},
                   {"disttf launch --data table.csv --page",
                    "Train on your own table; a browser shows the progress."},
                   {"disttf launch --workers 2 --program -- python3 train.py",
                    "Train the model of your own program."}},
      .files = {kInputDataFile, kCheckpointsFile, kBestFile, kRecordsFile, kEventsFile, kSocketFile,
                kRunSecretFile, kAuthoritiesFile, kRecipeFile},
      .reads = {Reads::kDownloads, Reads::kStores, Reads::kPath, Reads::kGpus, Reads::kRuntime,
                Reads::kTerminal},
      .see_also = {"status", "top", "pods", "predict", "serve", "plot"},
      .make = make_command<LaunchCommand>,
  };
}

}  // namespace disttf
