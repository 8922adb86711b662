// argv and the environment -> a checked action; or a text to print and an exit code.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "main/common_options.h"
#include "main/flags.h"
#include "roles/checkpoint/shell/checkpoint_command.h"
#include "roles/doctor/shell/doctor.h"
#include "roles/evaluator/shell/evaluator.h"
#include "roles/export/shell/export_command.h"
#include "roles/import/shell/import_command.h"
#include "roles/launch/shell/launcher.h"
#include "roles/launch/shell/manage.h"
#include "roles/launch/shell/own_program.h"
#include "roles/launch/shell/program_launcher.h"
#include "roles/monitor/shell/metrics_address.h"
#include "roles/monitor/shell/plot_command.h"
#include "roles/predict/shell/predict_command.h"
#include "roles/process/attempt.h"
#include "roles/process/log.h"
#include "roles/serve/shell/healthcheck.h"
#include "roles/serve/shell/serve_command.h"
#include "roles/servers/shell/plus.h"
#include "roles/servers/shell/task_server.h"
#include "roles/store/shell/store_command.h"
#include "roles/trainer/shell/trainer.h"
#include "roles/verify/shell/verify.h"

namespace disttf {

struct RunTask {  // ps, worker or chief, as options.task says
  roles::TrainerOptions options;
  roles::MetricsOptions metrics = {};
};
struct RunLaunch {
  roles::LaunchOptions options;
};
struct RunPrograms {  // launch -- COMMAND
  roles::ProgramOptions options;
};
struct RunOwnProgram {  // worker, chief or train --program -- COMMAND: a task and its program
  roles::OwnProgramOptions options;
};
struct RunDriver {  // train --existing_servers
  roles::TrainerOptions options;
  roles::MetricsOptions metrics = {};
};
struct RunServer {
  roles::TaskServerOptions options;
};
struct RunPlus {
  roles::PlusOptions options;
};
struct RunDownload {
  roles::DataOptions data;
};
struct InspectData {  // data.own is set
  roles::DataOptions data;
  bool as_json = false;
};
struct RunCheckpoint {
  roles::CheckpointCommand command;
};
struct RunPredict {
  roles::PredictOptions options;
};
struct RunServe {
  roles::ServeOptions options;
};
struct RunHealthcheck {
  roles::HealthcheckOptions options;
};
struct RunDoctor {
  roles::DoctorOptions options;
};
struct RunVerify {  // verify -- COMMAND
  roles::VerifyOptions options;
};
struct RunExport {
  roles::ExportOptions options;
};
struct RunImport {
  roles::ImportOptions options;
};
struct RunLs {
  roles::ListCommand command;
};
struct RunCp {
  roles::CopyCommand command;
};
struct RunPlot {
  roles::PlotOptions options;
};
struct RunShow {
  roles::ShowOptions options;
};
struct RunManage {  // a request to a running launch
  roles::ManageOptions options;
};
struct RunRender {  // writes a rendered file
  std::string path;
  std::string text;
};
struct RunEvaluator {
  roles::EvaluatorOptions options;
  roles::MetricsOptions metrics = {};
};
// Prints a text. The exit code is 0 for --help and --version, 2 without arguments.
struct Print {
  std::string text;
  int exit_code = 0;
};

struct Invocation {
  roles::LogOptions log;
  std::vector<std::string> warnings;     // logged once the log is set up
  std::string summary;                   // logged likewise, at level info; empty: none
  bool confines = true;                  // --confine
  std::vector<roles::Attempt> attempts;  // --debug_attempts
  std::variant<Print, RunTask, RunLaunch, RunPrograms, RunOwnProgram, RunDriver, RunServer, RunPlus,
               RunDownload, InspectData, RunCheckpoint, RunRender, RunPredict, RunServe,
               RunHealthcheck, RunDoctor, RunVerify, RunExport, RunImport, RunLs, RunCp, RunPlot,
               RunShow, RunManage, RunEvaluator>
      action;
};

// `arguments`: argv without the program's name. Throws std::invalid_argument: the flag, its value,
// what is allowed.
[[nodiscard]] Invocation parse_command_line(std::span<const std::string> arguments,
                                            const Environment& environment);

// The environment variables that Environment holds.
[[nodiscard]] std::span<const char* const> environment_names();

}  // namespace disttf
