#include "main/word_commands.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>

#include "main/command_words.h"
#include "main/completion.h"
#include "main/data_command.h"
#include "main/doctor_command.h"
#include "main/export_command.h"
#include "main/flags/passed_on.h"
#include "main/help_text.h"
#include "main/import_command.h"
#include "main/licenses.h"
#include "main/manage_command.h"
#include "main/model_command.h"
#include "main/parse_flags.h"
#include "main/plot_command.h"
#include "main/predict_command.h"
#include "main/serve_command.h"
#include "main/store_command.h"
#include "math/denormals.h"
#include "net/wire/text.h"
#include "roles/checkpoint/shell/checkpoint_command.h"
#include "roles/doctor/shell/doctor.h"
#include "roles/export/shell/export_command.h"
#include "roles/import/shell/import_command.h"
#include "roles/launch/shell/manage.h"
#include "roles/launch/shell/program_command.h"
#include "roles/monitor/shell/plot_command.h"
#include "roles/predict/shell/predict_command.h"
#include "roles/serve/shell/healthcheck.h"
#include "roles/store/shell/store_command.h"

namespace disttf {
namespace {

// A partly parsed command line of one of these commands.
struct Words {
  Command command;
  std::vector<std::string> arguments;  // positional words, which are removed, then flags
  const Environment& environment;
  Flags flags;
  std::unique_ptr<CLI::App> app = nullptr;

  // Parses the flags, after the positional words have been removed.
  void read_flags() { static_cast<void>(parse_flags(*app, arguments)); }
};

using Warnings = std::vector<std::string>;

std::unique_ptr<Action> checkpoint_action(Words& words, Warnings& /*warnings*/) {
  // The positional words come first: the parser of flags rejects words without a flag.
  roles::CheckpointCommand command = take_checkpoint_words(words.arguments);
  words.read_flags();
  return run_with(std::move(command), roles::run_checkpoint_command);
}

std::unique_ptr<Action> model_action(Words& words, Warnings& /*warnings*/) {
  math::ModelSpec spec = take_model_words(words.arguments);
  words.read_flags();
  return std::make_unique<Print>(model_text(std::move(spec), words.flags));
}

std::unique_ptr<Action> data_action(Words& words, Warnings& /*warnings*/) {
  take_data_words(words.arguments, words.flags);
  words.read_flags();
  return inspect_data(words.flags.run.data.options(words.environment), words.flags.json);
}

// Throws if a scheduling flag of Kubernetes is given for a target without pods.
void refuse_scheduling(const RenderFlags& flags, const render::Target& target) {
  if (target.makes_pods) {
    return;
  }
  std::string names;
  for (const render::Target& each : render::targets()) {
    if (each.makes_pods) {
      names += (names.empty() ? "" : ", ") + std::string(each.name);
    }
  }
  // Refused rather than ignored: a run without the gang or the priority asked for would look as if
  // it had them.
  const auto refuse = [&](const char* flag, const std::string& value) {
    if (!value.empty()) {
      throw std::invalid_argument(flag + net::quoted(value) + " is not allowed for " + target.name +
                                  ", only for " + names);
    }
  };
  refuse("--gang: ", flags.gang);
  refuse("--queue: ", flags.queue);
  refuse("--priority: ", flags.priority);
  refuse("--spread: ", flags.spread);
}

std::unique_ptr<Action> render_action(Words& words, Warnings& warnings) {
  const render::Target& target = take_target(words.arguments);
  Flags& flags = words.flags;
  // Before the flags are parsed: the words after -- belong to the COMMAND.
  if (auto command = take_launched_command(words.arguments, "render")) {
    flags.render.command = *std::move(command);
  }
  words.read_flags();
  flags.render.has_program = words.app->get_option("--program")->count() > 0;
  // A wrong placeholder fails here, not on the cluster.
  static_cast<void>(roles::fill_placeholders("COMMAND", flags.render.command, {}, {}));
  // Checked before the options file is read, so that a target that cannot use it reports that and
  // not an error in it.
  if (!flags.render.options.empty() && std::string_view(target.name) != "dcos") {
    throw std::invalid_argument("--options: " + net::quoted(flags.render.options) +
                                " is not allowed for " + target.name + ", only for dcos");
  }
  // Before every check below: the file sets flags that the command line leaves open, and they must
  // pass the same checks.
  warnings = read_options_file(*words.app, flags.render);
  if (flags.render.tensorboard && std::string_view(target.name) != "marathon" &&
      std::string_view(target.name) != "dcos") {
    throw std::invalid_argument(std::string("--tensorboard: true is not allowed for ") +
                                target.name + ", only for marathon and dcos");
  }
  if (!flags.render.storage_uri.empty() && std::string_view(target.name) != "kserve") {
    throw std::invalid_argument("--storage_uri: " + net::quoted(flags.render.storage_uri) +
                                " is not allowed for " + target.name + ", only for kserve");
  }
  refuse_scheduling(flags.render, target);
  // A target that only serves has no tasks with a secret.
  if (target.trains) {
    flags.run.network.credentials.check_rendered(flags.render.secret, target.secret_advice);
  }
  render::Deployment deployment =
      // The arguments of the tasks include training flags of the options file, which count as
      // given.
      make_deployment(
          flags.render, arguments_for_children(*words.app),
          {.train_dir = flags.run.checkpoints.train_dir, .log_dir = flags.run.summary_directory()});
  const roles::DatasetRow* const dataset = roles::find_dataset(flags.run.data.dataset);
  const auto own = own_data_options(flags.run.data.own);
  // The word that the chief will print, so that the file's comments quote the line that appears.
  deployment.result_word = own                  ? data::own_data_name(own->path)
                           : dataset == nullptr ? std::string(roles::usual_dataset().word())
                                                : std::string(dataset->word());
  // The chief then prints an error of the predictions instead of a share of right answers.
  if (own && own->label_is_number) {
    deployment.result_measure = "mean absolute error";
  }
  check_places(flags.run.checkpoints, flags.run.output);
  WrittenSettings& settings = flags.run.training.settings;
  if (!settings.has("isa") || settings.run.isa != math::Isa::kGeneric) {
    settings.given.erase("isa");  // the machines of the run may have other CPUs,
    settings.run.compute_dtype = math::ComputeDtype::kF32;  // so no check on this CPU applies
  }
  // Only for its checks: each task makes its own configuration. A wrong flag fails here, not on the
  // cluster.
  static_cast<void>(flags.run.run_config(
      flags.render.ps, flags.run.training.most_trainers(
                           flags.render.workers + flags.render.gpu_workers, flags.render.chief)));
  std::string text = target.render(deployment);
  if (flags.render.output.empty()) {
    return std::make_unique<Print>(std::move(text));
  }
  return run_with(RenderedFile{.path = flags.render.output, .text = std::move(text)},
                  write_rendered_file);
}

std::unique_ptr<Action> predict_action(Words& words, Warnings& /*warnings*/) {
  const std::vector<std::string> asked = take_predict_words(words.arguments);
  words.read_flags();
  const auto run = [](const roles::PredictOptions& options) {
    math::flush_denormals();  // before there is a second thread
    return roles::run_predict(options);
  };
  return run_with(
      predict_options(asked, words.flags, words.flags.run.data.options(words.environment)), run);
}

std::unique_ptr<Action> serve_action(Words& words, Warnings& warnings) {
  const std::string directory = take_serve_word(words.arguments);
  words.read_flags();
  return run_service(
      serve_options(directory, *words.app, words.flags, words.environment, warnings));
}

std::unique_ptr<Action> healthcheck_action(Words& words, Warnings& /*warnings*/) {
  roles::HealthcheckOptions options{.url = take_healthcheck_word(words.arguments)};
  words.read_flags();
  options.timeout = std::chrono::seconds(words.flags.healthcheck_timeout_s);
  options.token_file = words.flags.healthcheck_token_file;
  options.ca_file = words.flags.run.data.ca_file;
  return run_with(std::move(options), roles::run_healthcheck);
}

std::unique_ptr<Action> doctor_action(Words& words, Warnings& /*warnings*/) {
  words.read_flags();
  return run_with(doctor_options(words.flags, words.environment), roles::run_doctor);
}

std::unique_ptr<Action> export_action(Words& words, Warnings& /*warnings*/) {
  const std::string model = take_export_word(words.arguments);
  words.read_flags();
  const auto run = [](const roles::ExportOptions& options) {
    math::flush_denormals();  // before there is a second thread
    return roles::run_export(options);
  };
  return run_with(
      export_options(model, words.flags, words.flags.run.data.options(words.environment)), run);
}

std::unique_ptr<Action> import_action(Words& words, Warnings& /*warnings*/) {
  const std::string file = take_import_word(words.arguments);
  words.read_flags();
  return run_with(import_options(file, *words.app, words.flags), roles::run_import);
}

std::unique_ptr<Action> ls_action(Words& words, Warnings& /*warnings*/) {
  roles::ListCommand command{.place = take_ls_word(words.arguments)};
  words.read_flags();
  command.as_json = words.flags.json;
  return run_with(std::move(command), roles::run_list_command);
}

std::unique_ptr<Action> cp_action(Words& words, Warnings& /*warnings*/) {
  roles::CopyCommand command = take_cp_words(words.arguments);
  words.read_flags();
  command.threads = words.flags.copy_threads;
  return run_with(std::move(command), roles::run_copy_command);
}

// plot and show.
std::unique_ptr<Action> reading_action(Words& words, Warnings& /*warnings*/) {
  std::vector<std::string> runs = take_runs(words.command, words.arguments);
  words.read_flags();
  if (words.command == Command::kPlot) {
    return run_with(plot_options(std::move(runs), words.flags, words.environment), roles::run_plot);
  }
  return show_runs(show_options(std::move(runs), words.flags, words.environment));
}

std::unique_ptr<Action> completion_action(Words& words, Warnings& /*warnings*/) {
  std::string script = take_completion_word(words.arguments);
  words.read_flags();
  return std::make_unique<Print>(std::move(script));
}

std::unique_ptr<Action> licenses_action(Words& words, Warnings& /*warnings*/) {
  words.read_flags();
  return std::make_unique<Print>(licenses_text());
}

std::unique_ptr<Action> management_action(Words& words, Warnings& /*warnings*/) {
  roles::ManageOptions options = take_management_words(words.command, words.arguments);
  words.read_flags();
  complete(options, words.flags, words.environment);
  return run_with(std::move(options), roles::run_manage);
}

// nullptr: the command takes no positional words.
std::unique_ptr<Action> (*action_of(Command command))(Words&, Warnings&) {
  switch (command) {
    case Command::kCheckpoint:
      return checkpoint_action;
    case Command::kModel:
      return model_action;
    case Command::kData:
      return data_action;
    case Command::kRender:
      return render_action;
    case Command::kPredict:
      return predict_action;
    case Command::kServe:
      return serve_action;
    case Command::kHealthcheck:
      return healthcheck_action;
    case Command::kDoctor:
      return doctor_action;
    case Command::kExport:
      return export_action;
    case Command::kImport:
      return import_action;
    case Command::kCompletion:
      return completion_action;
    case Command::kLicenses:
      return licenses_action;
    case Command::kLs:
      return ls_action;
    case Command::kCp:
      return cp_action;
    case Command::kPlot:
    case Command::kShow:
      return reading_action;
    default:
      return is_management(command) ? management_action : nullptr;
  }
}

}  // namespace

std::optional<Invocation> parse_word_command(Command command,
                                             const std::vector<std::string>& arguments,
                                             const Environment& environment) {
  // nullptr leaves the arguments untouched for parse_command_line().
  const auto act = action_of(command);
  if (act == nullptr) {
    return std::nullopt;
  }
  Words words{.command = command, .arguments = arguments, .environment = environment, .flags = {}};
  words.app = make_app(command, words.flags);
  Invocation invocation;
  // Before the positional words are checked: --help works without them.
  if (auto help = help_asked_for(*words.app, words.arguments)) {
    invocation.action = std::make_unique<Print>(*std::move(help));
    return invocation;
  }
  // Each command takes its words from the front.
  words.arguments = words_first(*words.app, words.arguments);
  invocation.action = act(words, invocation.warnings);
  invocation.log = words.flags.log.options();
  invocation.confines = words.flags.run.confine;
  return invocation;
}

}  // namespace disttf
