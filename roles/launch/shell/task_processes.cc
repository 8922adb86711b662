#include "roles/launch/shell/task_processes.h"

#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "net/tcp/spawn.h"
#include "roles/launch/shell/child_process.h"
#include "roles/launch/shell/job_update.h"
#include "run/process/event_loop.h"

namespace disttf::roles {
namespace {

using Clock = std::chrono::steady_clock;

bool saves(const LaunchOptions& options) {
  return !argument_value(options.task_arguments, "train_dir").empty();
}

}  // namespace

TaskProcesses::TaskProcesses(asio::io_context& context, const LaunchOptions& options,
                             std::vector<std::string> variables, TaskEvents events)
    : context_(context),
      options_(options),
      variables_(std::move(variables)),
      events_(std::move(events)),
      timer_(context),
      cpus_(usable_cpus()),
      supervisor_(options.restart, saves(options), std::mt19937_64(std::random_device{}())) {
  add_missing_tasks();
}

void TaskProcesses::start_all() {
  // All ports are open before any task starts, so no task has to retry a connection.
  std::vector<asio::ip::tcp::acceptor> acceptors;
  for (const auto& task : tasks_) {
    task->workers_known = options_.workers;
    acceptors.push_back(task->port.listen());
  }
  for (std::size_t each = 0; each < tasks_.size(); ++each) {
    try_to_start(*tasks_[each], acceptors[each].native_handle());
  }
  act();
  // From here on only the process listens: when it dies, connections are refused.
}

// Adds tasks that the options count and that do not exist yet.
void TaskProcesses::add_missing_tasks() {
  for (const net::TaskId& id : tasks_of(options_)) {
    if (std::none_of(tasks_.begin(), tasks_.end(),
                     [&id](const auto& task) { return task->id == id; })) {
      add_task(id);
    }
  }
  report_limits();
}

LocalTask& TaskProcesses::add_task(const net::TaskId& id) {
  const RestartPolicy::Part part = part_of(id, options_);
  ReservedPort port(context_);
  std::optional<ReservedPort> metrics_port;
  if (options_.metrics.port) {
    metrics_port.emplace(context_);
  }
  const net::Address address = port.address();
  supervisor_.add(log_prefix(id), part);
  tasks_.push_back(
      std::make_unique<LocalTask>(LocalTask{.number = tasks_.size(),
                                            .id = id,
                                            .name = log_prefix(id),
                                            .is_chief = part == RestartPolicy::Part::kChief,
                                            .port = std::move(port),
                                            .listed = address,
                                            .workers_known = options_.workers,
                                            .since = std::chrono::system_clock::now(),
                                            .metrics_port = std::move(metrics_port)}));
  return *tasks_.back();
}

void TaskProcesses::add_workers(std::size_t count) {
  const std::size_t first = tasks_.size();
  options_.workers += count;
  add_missing_tasks();
  for (std::size_t each = first; each < tasks_.size(); ++each) {
    asio::ip::tcp::acceptor acceptor = tasks_[each]->port.listen();
    try_to_start(*tasks_[each], acceptor.native_handle());
  }
  act();
}

void TaskProcesses::set_options(const LaunchOptions& options) {
  options_.task_arguments = options.task_arguments;
  options_.ps_limits = options.ps_limits;
  options_.trainer_limits = options.trainer_limits;
  report_limits();
}

void TaskProcesses::report_limits() {
  supervisor_.set_saves(saves(options_));
  for (const auto& task : tasks_) {
    supervisor_.set_memory(task->number, limits_of(*task).memory_mib);
  }
}

const TaskLimits& TaskProcesses::limits_of(const LocalTask& task) const {
  static const TaskLimits kNone;
  return task.id.job == net::Job::kPs          ? options_.ps_limits
         : task.id.job == net::Job::kEvaluator ? kNone
                                               : options_.trainer_limits;
}

// The CPUs of a task, the same for all its processes.
std::vector<int> TaskProcesses::cpus_of(LocalTask& task) {
  const TaskLimits& limits = limits_of(task);
  if (!limits.cpus || cpus_.empty()) {
    return {};
  }
  const auto count = static_cast<std::size_t>(
      std::min(std::ceil(*limits.cpus), static_cast<double>(cpus_.size())));
  // Assigned once and kept: a restarted task stays on its CPUs, whose caches and memory it has
  // used.
  if (task.cpus.size() != count) {
    task.cpus.clear();
    for (std::size_t each = 0; each < count; ++each) {
      task.cpus.push_back(cpus_[next_cpu_++ % cpus_.size()]);
    }
  }
  return task.cpus;
}

// Reports to the supervisor if no process can be created. A shortage of descriptors ends the
// launch: this process's limit does not change while it waits.
void TaskProcesses::try_to_start(LocalTask& task, int listen_fd) {
  try {
    start(task, listen_fd);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::too_many_files_open) throw;
    supervisor_.could_not_start(task.number, error.what(), Clock::now());
  }
}

void TaskProcesses::start(LocalTask& task, int listen_fd) {
  const bool tells_records = task.is_chief || task.id.job == net::Job::kEvaluator;
  std::vector<std::string> variables = variables_for(task, tasks_, options_);
  // The run's secret is passed in the environment, not in arguments that every user can list.
  variables.insert(variables.end(), variables_.begin(), variables_.end());
  const bool has_program = has_own_program(task, options_);
  ChildProcess process =
      start_child({.arguments = arguments_for(task, tasks_, options_),
                   .command = has_program ? options_.program_command : std::vector<std::string>(),
                   .variables = std::move(variables),
                   .listen_fd = listen_fd,
                   .progress = tells_records,
                   .cpus = cpus_of(task),
                   .memory_mib = limits_of(task).memory_mib});
  // No SIGCHLD handler runs in between: the signal set delivers it on this thread, later.
  task.pid = process.pid;
  task.since = std::chrono::system_clock::now();
  supervisor_.started(task.number, Clock::now());
  // Counted before the readers start, which report each end.
  supervisor_.pipes_opened(tells_records ? 3 : 2);
  const auto to = [this, &task](bool is_result) {
    return [this, &task, is_result](std::string_view line) {
      task.log.append(line);
      events_.line(task, line, is_result);
    };
  };
  const auto spawn_reader = [this](data::FileDescriptor pipe, LineHandler handler) {
    // An exception ends the launcher, and with it the run.
    net::spawn(context_, read(std::move(pipe), std::move(handler)), net::rethrow);
  };
  if (tells_records) {
    spawn_reader(std::move(process.progress), [this, writer = process.pid](std::string_view line) {
      events_.progress(writer, line);
    });
  }
  spawn_reader(std::move(process.standard_output), to(task.is_chief));
  spawn_reader(std::move(process.standard_error), to(false));
}

asio::awaitable<void> TaskProcesses::read(data::FileDescriptor pipe, LineHandler handler) {
  co_await read_lines(std::move(pipe), std::move(handler));
  supervisor_.pipe_ended();
  act();
}

void TaskProcesses::reap() {
  for (const auto& task : tasks_) {
    int status = 0;
    // Only pids of tasks here; other children are reaped below without a record.
    if (task->pid > 0 && waitpid(task->pid, &status, WNOHANG) == task->pid) {
      task->pid = -1;
      task->since = std::chrono::system_clock::now();
      supervisor_.ended(task->number, ending_of(status), Clock::now());
    }
  }
  // Orphans of ended tasks become children of this process, too (keep_orphans()).
  reap_others([this](pid_t pid) {
    return std::ranges::any_of(tasks_, [pid](const auto& task) { return task->pid == pid; });
  });
  // Once for all endings: the supervisor must see every process that has ended before it decides
  // whether the launch has.
  supervisor_.reaped(Clock::now());
  act();
}

void TaskProcesses::restart(LocalTask& task) {
  supervisor_.restart(task.number, Clock::now());
  act();
}

void TaskProcesses::replace(LocalTask& task) {
  supervisor_.replace(task.number, Clock::now());
  act();
}

bool TaskProcesses::stop(int exit_code, int signal) {
  const bool chief_saves = supervisor_.stop(exit_code, signal, Clock::now());
  act();
  return chief_saves;
}

void TaskProcesses::kill_all() {
  supervisor_.kill_all();
  act();
}

void TaskProcesses::kill_task(LocalTask& task) {
  supervisor_.kill_task(task.number);
  act();
}

void TaskProcesses::freeze(LocalTask& task, std::chrono::milliseconds time) {
  supervisor_.freeze(task.number, time, Clock::now());
  act();
}

void TaskProcesses::restart_all(LaunchOptions options, std::function<void()> done) {
  wanted_ = std::move(options);
  all_restarted_ = std::move(done);
  supervisor_.restart_all(Clock::now());
  act();
}

// ------------------------------------------------------------------------------------ effects

void TaskProcesses::act() {
  // An effect may add more, e.g. a failed start; drain() carries those out as well.
  supervisor_.effects().drain([this](const auto& effect) { carry_out(effect); });
  call_at(timer_, supervisor_.deadline(), [this] {
    supervisor_.time(Clock::now());
    act();
  });
}

void TaskProcesses::carry_out(const StartTask& effect) {
  LocalTask& task = *tasks_[effect.task];
  try {
    // Listens before the process starts, so that peers can connect at once and wait in the backlog.
    asio::ip::tcp::acceptor acceptor = task.port.listen();
    try_to_start(task, acceptor.native_handle());
  } catch (const std::system_error& error) {
    supervisor_.could_not_start(effect.task, error.what(), Clock::now());
  }
}

// To a task with a program of its own, or to the part of it that a fault hits.
void TaskProcesses::signal_processes(LocalTask& task, int signal) {
  const ProcessFault::Part part =
      signal == SIGSTOP ? task.hit : std::exchange(task.hit, ProcessFault::Part::kAll);
  if (part == ProcessFault::Part::kAll) {
    signal_with_children(task.pid, signal);
    return;
  }
  for (const pid_t child : children_of(task.pid)) {
    // A program leads a group of its own.
    const bool is_program = getpgid(child) == child;
    if (is_program == (part == ProcessFault::Part::kProgram)) {
      kill(is_program ? -child : child, signal);
    }
  }
}

void TaskProcesses::carry_out(const SignalTask& effect) {
  LocalTask& task = *tasks_[effect.task];
  // Ended since the supervisor decided; kill(-1) would reach every process of the user.
  if (task.pid < 0) {
    return;
  }
  const bool is_caught =
      effect.signal != SIGKILL && effect.signal != SIGSTOP && effect.signal != SIGCONT;
  if (has_own_program(task, options_) && !is_caught) {
    signal_processes(task, effect.signal);
  } else {
    kill(task.pid, effect.signal);
  }
  const Asked asked = state_of(task).asked;
  if (asked == Asked::kReplace || (asked == Asked::kRestart && effect.signal == SIGTERM)) {
    task.since = std::chrono::system_clock::now();  // start of the state kStopping
  }
}

void TaskProcesses::carry_out(const MoveTask& effect) {
  tasks_[effect.task]->port = ReservedPort(context_);
}

void TaskProcesses::carry_out(const TaskChanged& effect) { events_.changed(*tasks_[effect.task]); }

void TaskProcesses::carry_out(const SayLine& effect) {
  events_.say(effect.text, effect.is_error ? LogLevel::kError : LogLevel::kWarning);
}

void TaskProcesses::carry_out(const AllEnded& /*effect*/) {
  if (may_start()) {  // else the run has ended meanwhile, or was stopped
    options_ = std::move(wanted_);
    // The new lists have the present addresses, so moved tasks are no longer special.
    for (const auto& task : tasks_) {
      task->listed = task->port.address();
    }
    add_missing_tasks();
    start_all();
  }
  std::exchange(all_restarted_, {})();
}

void TaskProcesses::carry_out(const AllGone& /*effect*/) { events_.all_gone(); }

}  // namespace disttf::roles
