#include "main/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "main/command_texts.h"
#include "main/completion.h"
#include "main/config_file.h"
#include "main/data_command.h"
#include "main/doctor_command.h"
#include "main/export_command.h"
#include "main/flag_values.h"
#include "main/help_text.h"
#include "main/import_command.h"
#include "main/manage_command.h"
#include "main/model_command.h"
#include "main/plot_command.h"
#include "main/predict_command.h"
#include "main/serve_command.h"
#include "main/store_command.h"
#include "main/verify_command.h"
#include "roles/run/run_config.h"

namespace disttf {
namespace {

constexpr const char* kSmokeTest = "Smoke test";
constexpr const char* kResolveGroup = "Resolve";

// The flags of server and plus, except the log's.
void add_of_servers(CLI::App& app, Command command, Flags& flags) {
  flags.cluster.add_lists(app);
  flags.run.timeouts.add_heartbeat(app);
  if (command == Command::kServer) {
    flags.cluster.add_identity(app, /*names_job=*/true);
    flags.cluster.add_finding(app);
    flags.run.data.add_to(app, DataFlags::Takes::kNamed);
    // The driver sends the other timeouts with its request.
    flags.run.timeouts.add_peer(app, "wait for an answer or the next request");
    flags.run.network.add_to(app, CredentialFlags::Of::kOneTask);
    add_metrics_flags(app, flags.run.metrics);
    flags.inherited.add_listen_fd(app);
    return;
  }
  flags.run.network.credentials.add_to(app, CredentialFlags::Of::kOneTask);
  app.add_flag("--verbose", flags.verbose,
               "also print each task's round trip, version and reachable tasks")
      ->transform(boolean())
      ->group(kSmokeTest);
  app.add_option("--wait", flags.wait_s, "seconds to wait for servers to start")
      ->type_name("SECONDS")
      ->transform(whole_number(0, kDaySeconds))
      ->capture_default_str()
      ->group(kSmokeTest);
}

// The words of `checkpoint`, for --help only: they are taken off the command line before the flags
// are parsed.
void add_checkpoint_words(CLI::App& app) {
  app.add_option("ACTION")
      ->description("ls, verify or show")
      ->check(one_of({"ls", "verify", "show"}));
  app.add_option("DIR")->description("The --train_dir of a run, or one checkpoint in it");
  app.footer(
      "\nls      one line for each checkpoint, newest first\n"
      "verify  reads everything; prints a line for each wrong file or tensor, then exits with 3\n"
      "show    step, configuration and tensors of the newest complete one");
}

void add_serve(CLI::App& app, Flags& flags) {
  add_serve_flags(app, flags);
  flags.cluster.add_lists(app);
  add_max_workers(app, flags.run.training.max_workers, kClusterGroup);
  flags.cluster.add_finding(app);
  flags.run.timeouts.add_heartbeat(app);
}

// Adds the flags, except the log's, of a command that has few. False: it takes a task's flags.
bool add_few(CLI::App& app, Command command, Flags& flags) {
  switch (command) {
    case Command::kCheckpoint:
      add_checkpoint_words(app);
      return true;
    case Command::kCompletion:
      app.add_option("SHELL")->description("bash, zsh or fish")->check(one_of(completion_shells()));
      return true;
    case Command::kLicenses:
      return true;
    case Command::kData:
      add_data_command_flags(app, flags);
      return true;
    case Command::kPredict:
      add_predict_flags(app, flags);
      flags.run.data.add_to(app, DataFlags::Takes::kOwn);
      return true;
    case Command::kServe:
      add_serve(app, flags);
      return true;
    case Command::kDoctor:
      add_doctor_flags(app, flags);
      return true;
    case Command::kVerify:
      add_verify_flags(app, flags);
      return true;
    case Command::kHealthcheck:
      add_healthcheck_flags(app, flags);
      return true;
    case Command::kExport:
      add_export_flags(app, flags);
      flags.run.data.add_to(app, DataFlags::Takes::kOwn);
      return true;
    case Command::kImport:
      add_import_flags(app, flags);
      flags.run.training.add_model(app);
      return true;
    case Command::kLs:
      add_ls_flags(app, flags);
      return true;
    case Command::kCp:
      add_cp_flags(app, flags);
      return true;
    case Command::kPlot:
      add_plot_flags(app, flags);
      return true;
    case Command::kShow:
      add_show_flags(app, flags);
      return true;
    case Command::kModel:
      add_model_flags(app, flags);
      return true;
    case Command::kServer:
    case Command::kPlus:
      add_of_servers(app, command, flags);
      return true;
    default:
      if (!is_management(command)) return false;
      add_management_flags(app, command, flags);
      return true;
  }
}

// The task's identity, its cluster, and what it does when the run ends.
void add_of_one_task(CLI::App& app, Command command, Flags& flags) {
  if (command == Command::kResolve) {
    // For the help; the word is taken off the command line before the flags are read.
    app.add_option("TASK")
        ->description("ps, worker, chief, evaluator or train, as that command sees it")
        ->check(one_of({"ps", "worker", "chief", "evaluator", "train"}));
    app.add_flag("--print", flags.print, "every fact and the variable or flag that it comes from")
        ->transform(boolean())
        ->group(kResolveGroup);
    app.add_flag("--json", flags.json, "print JSON")->transform(boolean())->group(kResolveGroup);
  }
  // Only these have no job in their name.
  flags.cluster.add_identity(app, command == Command::kTrain || command == Command::kResolve);
  flags.cluster.add_lists(app);
  if (command == Command::kTrain) {
    app.add_flag("--existing_servers", flags.existing_servers,
                 "`train`: the lists name running `disttf server` tasks; [drive them from "
                 "here](operations.md#existing-servers)")
        ->transform(boolean())
        ->group(kClusterGroup);
  }
  flags.cluster.add_finding(app);
  flags.run.output.add_on_finish(app);
  // Which trainer is the chief is known only after the cluster has been found, so every trainer
  // takes the flags of the page.
  if (command != Command::kPs) {
    flags.page.add_to(app);
  }
  if (takes_command(command)) {
    flags.program.add_to(app);
    flags.program.add_fd(app);
  }
  flags.inherited.add_to(app);
}

// The flags, except the log's, of a task, of launch and render, and of download, which takes some.
void add_of_tasks(CLI::App& app, Command command, Flags& flags) {
  if (command == Command::kDownload) {
    flags.run.data.add_to(app, DataFlags::Takes::kNamed);
    return;
  }
  if (command == Command::kRender) {
    add_render_flags(app, flags.render);
  } else if (command == Command::kLaunch) {
    flags.launch.add_to(app);
    flags.page.add_to(app);
    flags.program.add_to(app);
    flags.launch.add_of_command(app);
  } else {
    add_of_one_task(app, command, flags);
  }
  flags.run.add_to(app, command == Command::kLaunch ? CredentialFlags::Of::kSeveralTasks
                                                    : CredentialFlags::Of::kOneTask);
  // render has a --metrics_port of its own, among the flags of a deployment.
  if (command != Command::kRender) {
    add_metrics_flags(app, flags.run.metrics);
  }
}

}  // namespace

const std::vector<CommandInfo>& commands() {
  static const std::vector<CommandInfo> kCommands = {
      {Command::kLaunch, "launch", "Train on this machine: starts ps and workers as processes"},
      {Command::kPs, "ps", "One parameter server of a cluster"},
      {Command::kWorker, "worker",
       "One worker of a cluster; worker 0 is the chief where there is "
       "no chief task"},
      {Command::kChief, "chief", "The chief of a cluster, as a separate task"},
      {Command::kEvaluator, "evaluator",
       "Evaluates a run's checkpoints, or its current parameters, while it trains"},
      {Command::kTrain, "train",
       "Any of these: the role comes from --job_name, TF_CONFIG or the environment; "
       "without a cluster, trains on this machine"},
      {Command::kServer, "server",
       "A task that waits for requests of plus or train --existing_servers"},
      {Command::kPlus, "plus", "Smoke test of a cluster: its servers add 10 and 32"},
      {Command::kDownload, "download", "Fetch and extract a data set"},
      {Command::kCheckpoint, "checkpoint", "List, verify or show checkpoints"},
      {Command::kModel, "model", "Show the layers of a model"},
      {Command::kData, "data", "Inspect your own data"},
      {Command::kResolve, "resolve",
       "Print the detected role and cluster without starting anything"},
      {Command::kDoctor, "doctor", "Check what this machine offers to a task"},
      {Command::kVerify, "verify",
       "Check your own program: its protocol, and whether its gradients are deterministic"},
      {Command::kRender, "render", "Write a cluster engine's file: a TFJob, a Slurm script, ..."},
      {Command::kPredict, "predict", "Predict images or rows of a table with a trained model"},
      {Command::kServe, "serve", "Serve a trained model over HTTP"},
      {Command::kHealthcheck, "healthcheck",
       "Check the health of a service; the exit code is the result"},
      {Command::kExport, "export",
       "Write a trained model for other programs: ONNX, SavedModel, safetensors, NumPy"},
      {Command::kImport, "import", "Start a run from a foreign or an exported model"},
      {Command::kLs, "ls", "List a directory or a bucket"},
      {Command::kCp, "cp", "Copy files to a bucket, from one, or between two"},
      {Command::kPlot, "plot", "Draw the curves of runs: in the terminal, or as SVG"},
      {Command::kShow, "show", "Show a run: result, curves, tasks, events"},
      {Command::kCompletion, "completion", "Print the completion script of a shell"},
      {Command::kLicenses, "licenses",
       "Print the licences of disttf and of the components linked into it"},
      {Command::kStatus, "status", "Show the tasks and the progress of a running launch"},
      {Command::kTop, "top", "Show live what each task of a running launch does"},
      {Command::kTrace, "trace",
       "Record a timeline of some steps of all tasks, for ui.perfetto.dev"},
      {Command::kPage, "page",
       "Print a link to the page of a running launch, for one more browser"},
      {Command::kEndpoints, "endpoints", "Show the addresses of a running launch"},
      {Command::kLogs, "logs", "Print the output of a task of a running launch"},
      {Command::kPods, "pods", "List, restart or replace the tasks of a running launch"},
      {Command::kUpdate, "update", "Change the workers or the settings of a running launch"},
  };
  return kCommands;
}

std::unique_ptr<CLI::App> make_app(Command command, Flags& flags) {
  const auto info =
      std::find_if(commands().begin(), commands().end(),
                   [command](const CommandInfo& each) { return each.command == command; });
  // find_if() always finds: the table has a row for each Command.
  auto app = std::make_unique<CLI::App>(info->description, std::string("disttf ") + info->name);
  app->option_defaults()->always_capture_default(false);
  show_plain_help(*app, text_of(command).examples);
  app->set_help_flag("-h,--help", "Print this help and exit");
  app->set_help_all_flag("--help-all", "Print the help with all flags and exit");
  add_config_file(*app, command == Command::kRender ? "--cluster,--config" : "--config")
      ->type_name("FILE");
  // A misspelled key must not train with the default value.
  app->allow_config_extras(CLI::config_extras_mode::error);
  const bool has_few = add_few(*app, command, flags);
  if (!has_few) {
    add_of_tasks(*app, command, flags);
  }
  flags.log.add_to(*app);
  // Tasks take the flags of the sandbox and of testing; commands that end soon are confined without
  // a flag.
  if (!has_few && command != Command::kDownload) {
    flags.run.add_last(*app);
  }
  // serve is a network service like a task, but takes no flags of testing.
  if (command == Command::kServe) {
    add_confine(*app, flags.run.confine);
  }
  return app;
}

bool takes_command(Command command) {
  return command == Command::kLaunch || command == Command::kPs || command == Command::kWorker ||
         command == Command::kChief || command == Command::kTrain || command == Command::kResolve ||
         command == Command::kVerify;
}

std::string name_of_command(Command command) {
  return std::ranges::find(commands(), command, &CommandInfo::command)->name;
}

}  // namespace disttf
