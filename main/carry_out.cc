#include "main/carry_out.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <variant>

#include "data/output_file.h"
#include "main/data_command.h"
#include "main/sandbox_policy.h"
#include "main/version.h"
#include "math/denormals.h"
#include "net/transport/secrets.h"
#include "net/wire/text.h"
#include "roles/chief/shell/chief.h"
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
#include "roles/process/confinement.h"
#include "roles/process/log.h"
#include "roles/process/sandbox.h"
#include "roles/process/stop_signal.h"
#include "roles/ps/shell/parameter_server.h"
#include "roles/run/outcome.h"
#include "roles/serve/shell/healthcheck.h"
#include "roles/serve/shell/serve_command.h"
#include "roles/servers/shell/driver.h"
#include "roles/servers/shell/task_server.h"
#include "roles/trainer/shell/worker.h"
#include "text/shown_text.h"

namespace disttf {
namespace {

// Does not check for write errors: finish_output() reports them.
int run(const Print& print) {
  const std::string text = shown_text(print.text, KeptBreaks::kAll);
  // A help text that stands for an error goes to standard error: a script that reads the output
  // must not take it for a result.
  if (print.exit_code == roles::kDone) {
    roles::standard_output().write(text);
  } else {
    static_cast<void>(std::fputs(text.c_str(), stderr));
  }
  return print.exit_code;
}

// The metrics of this process, if a flag asks for them. Must outlive the role that updates them.
class Exported {
 public:
  Exported(const roles::MetricsOptions& options, const std::string& task, math::Isa isa) {
    if (options.any()) {
      // The order of the members counts: the address reads the meters until its destructor has
      // written the last values.
      meters_.emplace(task, kVersion, math::isa_name(isa));
      address_.emplace(options, *meters_);
    }
  }
  [[nodiscard]] roles::Meters* meters() { return meters_ ? &*meters_ : nullptr; }
  [[nodiscard]] roles::MetricsAddress* address() { return address_ ? &*address_ : nullptr; }

 private:
  std::optional<roles::Meters> meters_;
  std::optional<roles::MetricsAddress> address_;
};

int run(RunTask& run) {
  math::flush_denormals();  // before there is a second thread
  const roles::TrainerOptions& options = run.options;
  roles::Task& task = run.options.task;
  // On this frame: it outlives the role, and writes the last values after the role has ended.
  Exported exported(run.metrics, net::task_name(task.self), options.config.isa);
  task.meters = exported.meters();
  if (task.self.job == net::Job::kPs) {
    return roles::run_parameter_server(task, options.checkpoint.train_dir);
  }
  // Only the cluster decides: worker 0 is the chief if no chief task is listed.
  return task.cluster.is_chief(task.self) ? roles::run_chief(options) : roles::run_worker(options);
}

int run(RunLaunch& run) {
  // A launch computes nothing; the label must have some value.
  roles::LaunchOptions& options = run.options;
  Exported exported(options.metrics, "launch", math::supported_isas().front());
  options.meters = exported.meters();
  options.metrics_address = exported.address();
  return roles::run_launcher(options);
}

int run(const RunPrograms& run) { return roles::run_program_launcher(run.options); }

int run(const RunOwnProgram& run) { return roles::run_own_program(run.options); }

int run(RunDriver& run) {
  math::flush_denormals();  // before there is a second thread
  Exported exported(run.metrics, "chief:0", run.options.config.isa);
  run.options.task.meters = exported.meters();
  return roles::run_driver(run.options);
}

int run(const RunServer& run) { return roles::run_task_server(run.options); }

int run(const RunPlus& run) { return roles::run_plus(run.options); }

int run(const RunDownload& run) {
  const roles::StopSignal stop;
  roles::download_dataset(run.data, stop);
  return roles::kDone;
}

int run(const InspectData& inspect) {
  const roles::StopSignal stop;
  const data::OpenedOwnData data = roles::open_own_dataset(inspect.data, stop);
  return run(Print{.text = inspect.as_json ? data_json(data) : data_text(data)});
}

int run(const RunCheckpoint& run) { return roles::run_checkpoint_command(run.command); }

int run(const RunPredict& run) {
  math::flush_denormals();  // before there is a second thread
  return roles::run_predict(run.options);
}

int run(const RunServe& run) {
  math::flush_denormals();  // before there is a second thread
  return roles::run_serve(run.options);
}

int run(const RunHealthcheck& run) { return roles::run_healthcheck(run.options); }

int run(const RunExport& run) {
  math::flush_denormals();  // before there is a second thread
  return roles::run_export(run.options);
}

int run(const RunImport& run) { return roles::run_import(run.options); }

int run(const RunPlot& run) { return roles::run_plot(run.options); }

int run(const RunShow& run) { return roles::run_show(run.options); }

int run(const RunDoctor& run) { return roles::run_doctor(run.options); }

int run(const RunVerify& run) {
  math::flush_denormals();  // before there is a second thread
  return roles::run_verify(run.options);
}

int run(const RunLs& run) { return roles::run_list_command(run.command); }

int run(const RunCp& run) { return roles::run_copy_command(run.command); }

int run(const RunManage& run) { return roles::run_manage(run.options); }

int run(const RunRender& run) {
  try {
    data::write_output_file(run.path, run.text);
  } catch (const std::system_error& error) {
    // Not std::invalid_argument, which would exit as for a wrong flag: the file may be writable on
    // the next try.
    throw roles::Failure(roles::kError, "--output: " + std::string(error.what()));
  }
  return roles::kDone;
}

int run(RunEvaluator& run) {
  math::flush_denormals();  // before there is a second thread
  roles::Task& task = run.options.trainer.task;
  Exported exported(run.metrics, net::task_name(task.self), math::supported_isas().front());
  task.meters = exported.meters();
  return roles::run_evaluator(run.options);
}

// Which system-call filter an action gets.
template <typename Action>
// Commands are the default: a new action gets their filter until it is listed here.
constexpr roles::ProcessKind kKind = roles::ProcessKind::kCommand;
template <>
constexpr roles::ProcessKind kKind<RunServer> = roles::ProcessKind::kLauncher;
template <>
constexpr roles::ProcessKind kKind<RunPrograms> = roles::ProcessKind::kPrograms;
template <>
constexpr roles::ProcessKind kKind<RunOwnProgram> = roles::ProcessKind::kPrograms;
template <>
constexpr roles::ProcessKind kKind<RunVerify> = roles::ProcessKind::kPrograms;
template <>
constexpr roles::ProcessKind kKind<RunDriver> = roles::ProcessKind::kTrainer;
template <>
constexpr roles::ProcessKind kKind<RunEvaluator> = roles::ProcessKind::kEvaluator;
template <>
constexpr roles::ProcessKind kKind<RunServe> = roles::ProcessKind::kServe;

template <typename Action>
roles::ProcessKind kind_of(const Action& action) {
  if constexpr (std::is_same_v<Action, RunTask>) {
    return action.options.task.self.job == net::Job::kPs ? roles::ProcessKind::kPs
                                                         : roles::ProcessKind::kTrainer;
    // Its supervisors, and their programs, inherit its filter.
  } else if constexpr (std::is_same_v<Action, RunLaunch>) {
    return action.options.program_command.empty() ? roles::ProcessKind::kLauncher
                                                  : roles::ProcessKind::kPrograms;
  } else {
    static_cast<void>(action);
    return kKind<Action>;
  }
}

// Whether the action is sandboxed with Landlock: tasks and network services, whose files and ports
// follow from their flags. A launcher's tasks sandbox themselves; commands end soon.
template <typename Action>
constexpr bool kIsSandboxed =
    std::is_same_v<Action, RunTask> || std::is_same_v<Action, RunDriver> ||
    std::is_same_v<Action, RunEvaluator> || std::is_same_v<Action, RunServe> ||
    std::is_same_v<Action, RunShow>;

// Whether the action serves the network. `show` does with --page only.
template <typename Action>
bool answers_others(const Action& action) {
  if constexpr (std::is_same_v<Action, RunShow>) {
    return action.options.page.has_value();
  } else {
    static_cast<void>(action);
    return true;
  }
}

// Applies seccomp and Landlock. Must run before a second thread starts, so that both cover all
// threads.
template <typename Action>
void enter_sandbox(const Action& action, const Environment& environment) {
  // seccomp first: confine() sets no_new_privs, without which the kernel refuses Landlock. An old
  // kernel is logged, not refused: the sandbox is a second line of defence.
  if (!roles::confine(kind_of(action)).filters_calls) {
    roles::log_debug("seccomp is unavailable: system calls are not filtered");
  }
  if constexpr (kIsSandboxed<Action>) {
    if (answers_others(action) &&
        !roles::enforce_sandbox(sandbox_policy_for(action, environment)).is_in_force) {
      roles::log_debug("Landlock is unavailable: files and ports are not restricted");
    }
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

}  // namespace

int carry_out(Invocation& invocation, const Environment& environment) {
  const auto start = [&](auto& action) {
    // The order below: the secret is erased before anything of a peer is read, and the sandbox is
    // in force before the role opens its first socket or file.
    const roles::ProcessKind kind = kind_of(action);
    // As process 1 of a container, or as a child subreaper, a task inherits orphans. The kernel
    // reaps them where SIGCHLD is ignored. Launchers reap their children themselves.
    if (!starts_programs(kind)) std::signal(SIGCHLD, SIG_IGN);
    keep_secrets(kind);
    if (invocation.confines) enter_sandbox(action, environment);
    // After the sandbox is in force, because the attempts test it.
    if constexpr (kIsSandboxed<std::remove_reference_t<decltype(action)>>) {
      for (const roles::Attempt& each : invocation.attempts) roles::log_warning(try_out(each));
    }
    return run(action);
  };
  return std::visit(start, invocation.action);
}

}  // namespace disttf
