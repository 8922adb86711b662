#include <CLI/CLI.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "main/commands/registry.h"
#include "main/flags/run.h"
#include "main/render_flags.h"
#include "net/wire/text.h"
#include "roles/launch/shell/program_command.h"
#include "storage/download/datasets.h"

namespace disttf {
namespace {

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

class RenderCommand : public WordCommand {
 public:
  [[nodiscard]] const char* config_names() const override { return "--cluster,--config"; }

  void add_options(CLI::App& app) override {
    add_render_flags(app, render_);
    run_.add_to(app, CredentialFlags::Of::kOneTask);
    // Not those of the metrics: --metrics_port is among the flags of a deployment.
  }
  void add_last_options(CLI::App& app) override {
    WordCommand::add_last_options(app);
    run_.add_last(app);
  }

  [[nodiscard]] bool takes_program() const override { return true; }

  std::unique_ptr<Action> action(const ParsedLine& line) override {
    line.invocation.confines = run_.confine;
    if (line.program) {
      render_.command = *line.program;
    }
    render_.program_arguments = render_.program_rules.given_arguments(line.app);
    render_.has_program = line.app.get_option("--program")->count() > 0;
    // A wrong placeholder fails here, not on the cluster.
    static_cast<void>(roles::fill_placeholders("COMMAND", render_.command, {}, {}));
    take_options_file(line);
    refuse_flags_of_others();
    // A target that only serves has no tasks with a secret.
    if (target_->trains) {
      run_.network.credentials.check_rendered(render_.secret, target_->secret_advice);
    }
    const render::Deployment deployment = described_deployment(line.app);
    check_places(run_.checkpoints, run_.output);
    check_run();
    std::string text = target_->render(deployment);
    if (render_.output.empty()) {
      return std::make_unique<Print>(std::move(text));
    }
    return run_with(RenderedFile{.path = render_.output, .text = std::move(text)},
                    write_rendered_file);
  }

 private:
  void take(std::vector<std::string>& arguments) override { target_ = &take_target(arguments); }

  // The file sets flags that the command line leaves open, and they must pass the same checks.
  void take_options_file(const ParsedLine& line) {
    // Checked before the file is read, so that a target that cannot use it reports that and not an
    // error in it.
    if (!render_.options.empty() && std::string_view(target_->name) != "dcos") {
      throw std::invalid_argument("--options: " + net::quoted(render_.options) +
                                  " is not allowed for " + target_->name + ", only for dcos");
    }
    line.invocation.warnings = read_options_file(line.app, render_);
  }

  void refuse_flags_of_others() const {
    const std::string_view name = target_->name;
    if (render_.tensorboard && name != "marathon" && name != "dcos") {
      throw std::invalid_argument(std::string("--tensorboard: true is not allowed for ") +
                                  target_->name + ", only for marathon and dcos");
    }
    if (!render_.storage_uri.empty() && name != "kserve") {
      throw std::invalid_argument("--storage_uri: " + net::quoted(render_.storage_uri) +
                                  " is not allowed for " + target_->name + ", only for kserve");
    }
    refuse_scheduling(render_, *target_);
  }

  [[nodiscard]] render::Deployment described_deployment(const CLI::App& app) const {
    // The arguments of the tasks include training flags of the options file, which count as given.
    render::Deployment deployment = make_deployment(
        render_, arguments_for_children(app),
        {.train_dir = run_.checkpoints.train_dir, .log_dir = run_.summary_directory()});
    const roles::DatasetRow* const dataset = roles::find_dataset(run_.data.dataset);
    const auto own = own_data_options(run_.data.own);
    // The word that the chief will print, so that the file's comments quote the line that appears.
    deployment.result_word = own                  ? data::own_data_name(own->path)
                             : dataset == nullptr ? std::string(roles::usual_dataset().word())
                                                  : std::string(dataset->word());
    // The chief then prints an error of the predictions instead of a share of right answers.
    if (own && own->label_is_number) {
      deployment.result_measure = "mean absolute error";
    }
    return deployment;
  }

  // Each task makes its own configuration. A wrong flag fails here, not on the cluster.
  void check_run() {
    WrittenSettings& settings = run_.training.settings;
    if (!settings.has("isa") || settings.run.isa != math::Isa::kGeneric) {
      settings.given.erase("isa");  // the machines of the run may have other CPUs,
      settings.run.compute_dtype = math::ComputeDtype::kF32;  // so no check on this CPU applies
    }
    static_cast<void>(run_.run_config(
        render_.ps,
        run_.training.most_trainers(render_.workers + render_.gpu_workers, render_.chief)));
  }

  const render::Target* target_ = nullptr;
  RenderFlags render_;
  RunFlags run_;
};

}  // namespace

CommandRow render_command() {
  return {
      .name = "render",
      .description = "Write a cluster engine's file: a TFJob, a Slurm script, ...",
      .words = "TARGET",
      .about = "Starts nothing: the file is for the engine's own tools.",
      .examples =
          {{"disttf render kubernetes --image registry/disttf:1 --workers 4 | kubectl apply -f -",
            "A run on Kubernetes."},
           {"disttf render slurm --output job.sh", "A batch script."},
           {"disttf render jobset --program --image registry/mine:1 --gpus 1 -- python3 train.py",
            "Your own program, with a GPU for each worker."}},
      .files = {kRecipeFile},
      .see_also = {"launch", "resolve", "serve"},
      .make = make_command<RenderCommand>,
  };
}

}  // namespace disttf
