#include "roles/launch/shell/program_launcher.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <csignal>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "net/tcp/spawn.h"
#include "net/wire/text.h"
#include "roles/launch/core/program_supervisor.h"
#include "roles/launch/shell/child_output.h"
#include "roles/launch/shell/child_process.h"
#include "roles/launch/shell/program_command.h"
#include "roles/launch/shell/reserved_port.h"
#include "run/outcome.h"
#include "run/process/event_loop.h"
#include "run/process/stop_signal.h"

namespace disttf::roles {
namespace {

using Clock = std::chrono::steady_clock;

// Lines kept of a task that is not shown, in case it fails.
constexpr std::size_t kKeptLines = 20;

using Programs = std::array<Program, kProgramParts>;  // of a task, in sequence

Programs programs_of(const ProgramOptions& options, const net::Cluster& cluster,
                     const net::TaskId& task) {
  return {find_command("--initializer", options.initializer, cluster, task, options.search_path),
          find_command("COMMAND", options.command, cluster, task, options.search_path),
          find_command("--finalizer", options.finalizer, cluster, task, options.search_path)};
}

std::vector<net::TaskId> tasks_of(const ProgramOptions& options) {
  std::vector<net::TaskId> tasks;
  for (std::size_t index = 0; index < options.ps; ++index) {
    tasks.push_back({.job = net::Job::kPs, .index = index});
  }
  for (std::size_t index = 0; index < options.workers; ++index) {
    tasks.push_back({.job = net::Job::kWorker, .index = index});
  }
  return tasks;
}

class ProgramLauncher {
 public:
  explicit ProgramLauncher(const ProgramOptions& options)
      : options_(options),
        secret_variables_(secret_variables(
            options.secret, options.secret == SecretOfRun::kMade ? make_run_secret() : "")),
        signals_(context_, SIGINT, SIGTERM, SIGCHLD),
        timer_(context_) {
    if (!is_ignored(SIGHUP)) {
      signals_.add(SIGHUP);
    }
  }
  int run();

 private:
  struct Task {
    net::TaskId id;
    std::string prefix;  // "[worker:1]"
    ReservedPort port;
    bool shown = false;
    Programs programs = {};
    pid_t pid = -1;  // of the running part; -1: none
    std::deque<std::string> kept = {};
  };

  void add_task(const net::TaskId& id);
  asio::awaitable<void> forward(data::FileDescriptor fd, LineHandler handler,
                                LinesPaused is_paused);
  void on_line(Task& task, std::string_view line, bool is_output);
  void watch_signals();
  void reap();
  // Carries out the supervisor's effects. To be called after each event.
  void act();
  void start(const StartPart& effect);
  void carry_out(const StartPart& effect);
  void carry_out(const SignalGroup& effect);
  void carry_out(const ProgramWarning& effect) { console_.say(effect.text, LogLevel::kWarning); }
  void carry_out(const PipesAreLate& effect);
  void carry_out(const ProgramsEnded& /*effect*/) { context_.stop(); }

  const ProgramOptions& options_;
  const std::vector<std::string> secret_variables_;  // for disttf as the COMMAND
  asio::io_context context_{1};
  asio::signal_set signals_;
  asio::steady_timer timer_;  // at the supervisor's deadline, if there is one
  Console console_;
  net::Cluster cluster_;
  std::vector<std::unique_ptr<Task>> tasks_;  // in the supervisor's order
  ProgramSupervisor supervisor_;
};

int ProgramLauncher::run() {
  for (const net::TaskId& id : tasks_of(options_)) {
    add_task(id);
  }
  // A second loop: words may name the address of any task, so all ports must be reserved first.
  for (const auto& task : tasks_) {
    task->programs = programs_of(options_, cluster_, task->id);
    // The supervisor knows only which parts exist; files and words stay here.
    std::array<bool, kProgramParts> has{};
    std::ranges::transform(task->programs, has.begin(),
                           [](const Program& program) { return !program.file.empty(); });
    supervisor_.add(task->prefix, task->id.job == net::Job::kWorker, has);
  }
  watch_signals();
  supervisor_.begin();
  act();
  context_.run();
  // The last lines of a failed task that was not shown usually contain the reason.
  if (const auto failed = supervisor_.failed()) {
    for (const std::string& line : tasks_[*failed]->kept) {
      console_.print_line_of(tasks_[*failed]->id, line);
    }
  }
  return supervisor_.exit_code();
}

// Reserves the task's port and enters it into the cluster.
void ProgramLauncher::add_task(const net::TaskId& id) {
  const bool is_worker = id.job == net::Job::kWorker;
  auto task = std::make_unique<Task>(Task{
      .id = id,
      .prefix = log_prefix(id),
      .port = ReservedPort(context_),
      .shown = !options_.worker_logs || (is_worker && options_.worker_logs->contains(id.index))});
  (is_worker ? cluster_.workers : cluster_.ps).push_back(task->port.address());
  tasks_.push_back(std::move(task));
}

asio::awaitable<void> ProgramLauncher::forward(data::FileDescriptor fd, LineHandler handler,
                                               LinesPaused is_paused) {
  co_await read_lines(std::move(fd), std::move(handler), std::move(is_paused));
  supervisor_.pipe_ended();
  act();
}

void ProgramLauncher::on_line(Task& task, std::string_view line, bool is_output) {
  // Kept in memory only, and bounded: a task may print for days before it fails.
  if (!task.shown) {
    task.kept.emplace_back(line);
    if (task.kept.size() > kKeptLines) {
      task.kept.pop_front();
    }
    return;
  }
  if (is_output) {
    console_.print_output(task.prefix + " " + std::string(line));
  } else {
    console_.print_line_of(task.id, line);
  }
}

void ProgramLauncher::watch_signals() {
  signals_.async_wait([this](const std::error_code& error, int signal) {
    if (error) {
      return;
    }
    watch_signals();
    if (signal == SIGCHLD) {
      reap();
    } else {
      supervisor_.stop(exit_code_for(signal), signal, Clock::now());
    }
    act();
  });
}

// A task's group ends with its leader. Until the leader is reaped, its number is not reused.
void ProgramLauncher::reap() {
  for (std::size_t number = 0; number < tasks_.size(); ++number) {
    Task& task = *tasks_[number];
    siginfo_t ended{};
    if (task.pid < 0 ||
        waitid(P_PID, static_cast<id_t>(task.pid), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        ended.si_pid != task.pid) {
      continue;
    }
    // Before waitpid(): while the leader is a zombie, its group's number cannot belong to another
    // process.
    kill(-task.pid, SIGKILL);
    int status = 0;
    waitpid(task.pid, &status, 0);
    task.pid = -1;
    supervisor_.ended(number, ending_of(status), Clock::now());
    act();
  }
  reap_others([this](pid_t pid) {
    return std::ranges::any_of(tasks_, [pid](const auto& task) { return task->pid == pid; });
  });
}

// ------------------------------------------------------------------------------------ effects

void ProgramLauncher::act() {
  supervisor_.effects().drain([this](const auto& effect) { carry_out(effect); });
  call_at(timer_, supervisor_.deadline(), [this] {
    supervisor_.time(Clock::now());
    act();
  });
}

void ProgramLauncher::carry_out(const StartPart& effect) {
  try {
    start(effect);
  } catch (const std::system_error& error) {
    supervisor_.could_not_start(effect.task, error.what(), Clock::now());
  }
}

void ProgramLauncher::start(const StartPart& effect) {
  Task& task = *tasks_[effect.task];
  const Program& program = task.programs.at(static_cast<std::size_t>(effect.part));
  std::vector<std::string> variables = task_variables(cluster_, task.id);
  variables.insert(variables.end(), secret_variables_.begin(), secret_variables_.end());
  const std::vector<std::string> gpus =
      gpu_variables(options_.gpus,
                    task.id.job == net::Job::kWorker ? std::optional(task.id.index) : std::nullopt);
  variables.insert(variables.end(), gpus.begin(), gpus.end());
  ChildProcess process = start_child({.program = program.file,
                                      .name = program.words.front(),
                                      .arguments = {program.words.begin() + 1, program.words.end()},
                                      .variables = std::move(variables)});
  task.pid = process.pid;
  supervisor_.started(effect.task);
  supervisor_.pipes_opened(2);
  const auto handler = [this, &task](bool is_output) {
    return [this, &task, is_output](std::string_view line) { on_line(task, line, is_output); };
  };
  const auto spawn_reader = [this](data::FileDescriptor pipe, LineHandler lines,
                                   LinesPaused is_paused) {
    // An exception ends the launcher, and with it the run.
    net::spawn(context_, forward(std::move(pipe), std::move(lines), std::move(is_paused)),
               net::rethrow);
  };
  spawn_reader(std::move(process.standard_output), handler(true), Console::is_output_full);
  spawn_reader(std::move(process.standard_error), handler(false), {});
}

void ProgramLauncher::carry_out(const SignalGroup& effect) {
  if (const pid_t pid = tasks_[effect.task]->pid; pid > 0) {
    kill(-pid, effect.signal);
    // Harmless to processes that run.
    kill(-pid, SIGCONT);  // a stopped process receives the signal only when it continues
  }
}

void ProgramLauncher::carry_out(const PipesAreLate& /*effect*/) {
  // A slow reader of standard output, e.g. a pager, must not lose lines. Otherwise a process that
  // left its group holds the pipe open.
  if (Console::is_output_full()) {  // the remaining output waits for the reader
    supervisor_.wait_for_pipes(Clock::now());
  } else {
    context_.stop();
  }
}

}  // namespace

void validate(const ProgramOptions& options) {
  // Stands for ports that are not known yet; no program's name depends on them.
  net::Cluster cluster;
  for (const net::TaskId& task : tasks_of(options)) {
    // Builds all words and searches all programs, for the exceptions only.
    static_cast<void>(programs_of(options, cluster, task));
  }
}

int run_program_launcher(const ProgramOptions& options) { return ProgramLauncher(options).run(); }

}  // namespace disttf::roles
