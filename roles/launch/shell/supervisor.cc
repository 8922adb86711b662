#include "roles/launch/shell/supervisor.h"

#include <sys/wait.h>

#include <algorithm>
#include <asio/use_awaitable.hpp>
#include <cmath>
#include <csignal>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "net/transport/as_tuple.h"
#include "net/transport/spawn.h"
#include "roles/launch/shell/child_process.h"
#include "roles/launch/shell/update_plan.h"
#include "roles/run/outcome.h"

namespace disttf::roles {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// After the run's end the others are gone within 2 s; a multiple of it for a busy machine.
constexpr std::chrono::seconds kFinishGrace{10};

}  // namespace

Supervisor::Supervisor(asio::io_context& context, const LaunchOptions& options,
                       SupervisorEvents events)
    : context_(context),
      options_(options),
      events_(std::move(events)),
      grace_(context),
      gone_(context, Clock::time_point::max()),
      cpus_(usable_cpus()),
      policy_(options.restart, {}, std::mt19937_64(std::random_device{}())) {
  add_missing_tasks();
}

void Supervisor::start_all() {
  // All ports are open before any task is started: nobody has to try twice.
  std::vector<asio::ip::tcp::acceptor> acceptors;
  for (const auto& task : tasks_) {
    task->workers_known = options_.workers;
    acceptors.push_back(task->port.listen());
  }
  for (std::size_t each = 0; each < tasks_.size(); ++each) {
    start(*tasks_[each], acceptors[each].native_handle());
  }
  // From here on only the process listens: when it dies, connections to it are refused.
}

// Those that the options count and that are not there yet.
void Supervisor::add_missing_tasks() {
  for (const net::TaskId& id : tasks_of(options_)) {
    if (std::none_of(tasks_.begin(), tasks_.end(),
                     [&id](const auto& task) { return task->id == id; })) {
      add_task(id);
    }
  }
}

// Reserves the task's port.
LocalTask& Supervisor::add_task(const net::TaskId& id) {
  const RestartPolicy::Part part = part_of(id, options_);
  ReservedPort port(context_);
  const net::Address address = port.address();
  policy_.add(part);
  tasks_.push_back(
      std::make_unique<LocalTask>(LocalTask{.number = tasks_.size(),
                                            .id = id,
                                            .name = log_prefix(id),
                                            .is_chief = part == RestartPolicy::Part::kChief,
                                            .port = std::move(port),
                                            .listed = address,
                                            .workers_known = options_.workers,
                                            .restart = asio::steady_timer(context_),
                                            .thaw = asio::steady_timer(context_),
                                            .patience = asio::steady_timer(context_),
                                            .since = std::chrono::system_clock::now()}));
  return *tasks_.back();
}

void Supervisor::add_workers(std::size_t count) {
  const std::size_t first = tasks_.size();
  options_.workers += count;
  add_missing_tasks();
  for (std::size_t each = first; each < tasks_.size(); ++each) {
    asio::ip::tcp::acceptor acceptor = tasks_[each]->port.listen();
    start(*tasks_[each], acceptor.native_handle());
  }
}

void Supervisor::set_options(const LaunchOptions& options) {
  options_.task_arguments = options.task_arguments;
  options_.ps_limits = options.ps_limits;
  options_.trainer_limits = options.trainer_limits;
}

const TaskLimits& Supervisor::limits_of(const LocalTask& task) const {
  return task.id.job == net::Job::kPs ? options_.ps_limits : options_.trainer_limits;
}

// Every process of a task gets the same.
std::vector<int> Supervisor::cpus_of(LocalTask& task) {
  const TaskLimits& limits = limits_of(task);
  if (!limits.cpus || cpus_.empty()) {
    return {};
  }
  const auto count = static_cast<std::size_t>(
      std::min(std::ceil(*limits.cpus), static_cast<double>(cpus_.size())));
  if (task.cpus.size() != count) {
    task.cpus.clear();
    for (std::size_t each = 0; each < count; ++each) {
      task.cpus.push_back(cpus_[next_cpu_++ % cpus_.size()]);
    }
  }
  return task.cpus;
}

void Supervisor::start(LocalTask& task, int listen_fd) {
  ChildProcess process = start_child({.arguments = arguments_for(task, tasks_, options_),
                                      .variables = variables_for(task, tasks_),
                                      .listen_fd = listen_fd,
                                      .progress = task.is_chief,
                                      .cpus = cpus_of(task),
                                      .memory_mib = limits_of(task).memory_mib});
  task.pid = process.pid;
  task.fault = false;
  task.asked = Asked::kNothing;
  task.since = std::chrono::system_clock::now();
  policy_.started(task.number, Clock::now());
  const auto to = [this, &task](bool is_result) {
    return [this, &task, is_result](std::string_view line) {
      task.log.append(line);
      events_.line(task, line, is_result);
    };
  };
  events_.changed(task);
  if (task.is_chief) {
    spawn(read(std::move(process.progress), events_.progress));
  }
  spawn(read(std::move(process.standard_output), to(task.is_chief)));
  spawn(read(std::move(process.standard_error), to(false)));
}

void Supervisor::reap() {
  for (const auto& task : tasks_) {
    int status = 0;
    if (task->pid > 0 && waitpid(task->pid, &status, WNOHANG) == task->pid) {
      task->pid = -1;
      on_exit(*task, status);
    }
  }
  gone_.cancel();
  tell_if_all_gone();
}

void Supervisor::on_exit(LocalTask& task, int status) {
  const bool was_finished = policy_.finished();
  task.frozen = false;
  task.thaw.cancel();
  task.patience.cancel();
  task.ending = ending_of(status, task.fault);
  task.ending->planned |= task.asked != Asked::kNothing;
  task.since = std::chrono::system_clock::now();
  const bool is_done = task.ending->signal == 0 && task.ending->exit_code == kDone;
  if (held_ && !is_done) {
    return;  // restart_all() starts it again
  }
  const RestartPolicy::Decision decision = policy_.ended(task.number, *task.ending, Clock::now());
  if (!decision.sentence.empty()) {
    events_.say(task.name + " " + decision.sentence, decision.action == RestartPolicy::Action::kStop
                                                         ? LogLevel::kError
                                                         : LogLevel::kWarning);
  }
  const std::optional<std::uint64_t>& memory_mib = limits_of(task).memory_mib;
  if (memory_mib && decision.action == RestartPolicy::Action::kStop) {
    events_.say(
        task.name + " could have " + std::to_string(*memory_mib) +
            " MiB of memory of its own; if that was too little, --memory, --ps_memory and the "
            "mem of an options file set it",
        LogLevel::kError);
  }
  switch (decision.action) {
    case RestartPolicy::Action::kLeave:
      break;
    case RestartPolicy::Action::kRestart:
      if (task.asked == Asked::kReplace) {
        move(task);
      }
      task.waits = true;
      spawn(restart_after(task, decision.delay));
      break;
    case RestartPolicy::Action::kStop:
      if (task.id.job == net::Job::kPs) {  // with which the state is lost
        stop_processes(SIGTERM);
      } else {
        stop_in_order(SIGTERM);
      }
      break;
  }
  events_.changed(task);
  if (policy_.finished() && !was_finished) {
    cancel_restarts();
    start_grace(kFinishGrace);
  }
}

void Supervisor::move(LocalTask& task) {
  if (task.can_move()) {
    task.port = ReservedPort(context_);
  }
}

asio::awaitable<void> Supervisor::restart_after(LocalTask& task, milliseconds delay) {
  task.restart.expires_after(delay);
  co_await task.restart.async_wait(net::kAsTuple);
  if (!task.waits) {
    co_return;  // cancelled
  }
  task.waits = false;
  try {
    asio::ip::tcp::acceptor acceptor = task.port.listen();
    ++task.restarts;
    start(task, acceptor.native_handle());
  } catch (const std::system_error& error) {
    events_.say(task.name + " cannot be started again: " + error.what() + "; stopping the others",
                LogLevel::kError);
    stop(kError, SIGTERM);
    tell_if_all_gone();
  }
}

void Supervisor::restart(LocalTask& task) {
  if (task.pid > 0) {
    task.asked = Asked::kRestart;
    task.since = std::chrono::system_clock::now();
    end_process(task);
  } else {
    task.restart.cancel();  // it waits to be started: now
  }
}

void Supervisor::replace(LocalTask& task) {
  if (task.pid > 0) {
    task.asked = Asked::kReplace;
    task.since = std::chrono::system_clock::now();
    kill(task.pid, SIGKILL);
  } else {
    move(task);
    task.restart.cancel();
  }
}

void Supervisor::end_process(LocalTask& task, int signal) {
  kill(task.pid, signal);
  thaw(task);
  spawn(kill_when_impatient(task));
}

asio::awaitable<void> Supervisor::kill_when_impatient(LocalTask& task) {
  task.patience.expires_after(kStopGrace);
  auto [error] = co_await task.patience.async_wait(net::kAsTuple);
  if (!error && task.pid > 0) {
    events_.say(
        task.name + " did not end within " + std::to_string(kStopGrace.count()) + " s; killing it",
        LogLevel::kWarning);
    kill(task.pid, SIGKILL);
  }
}

asio::awaitable<void> Supervisor::restart_all(LaunchOptions options) {
  held_ = true;
  cancel_restarts();
  co_await end_all(/*chief=*/true);
  co_await end_all(/*chief=*/false);
  held_ = false;
  if (!may_start()) {  // the run ended, or was told to, meanwhile
    tell_if_all_gone();
    co_return;
  }
  options_ = std::move(options);
  for (const auto& task : tasks_) {
    task->listed = task->port.address();
    ++task->restarts;
  }
  add_missing_tasks();
  start_all();
}

// Returns when the processes of the chief, or of the others, have ended.
asio::awaitable<void> Supervisor::end_all(bool chief) {
  for (const auto& task : tasks_) {
    if (task->is_chief == chief && task->pid > 0) {
      task->asked = Asked::kRestart;
      end_process(*task);
    }
  }
  while (std::any_of(tasks_.begin(), tasks_.end(), [chief](const auto& task) {
    return task->is_chief == chief && task->pid > 0;
  })) {
    co_await gone_.async_wait(net::kAsTuple);
  }
}

void Supervisor::cancel_restarts() {
  for (const auto& task : tasks_) {
    task->waits = false;
    task->restart.cancel();
  }
}

bool Supervisor::stop(int exit_code, int signal) {
  policy_.stop(exit_code);
  return stop_in_order(signal);
}

void Supervisor::kill_all() {
  for (const auto& task : tasks_) {
    if (task->pid > 0) {
      kill(task->pid, SIGKILL);
    }
  }
}

// The chief, where it has a directory to save in.
LocalTask* Supervisor::who_can_save() const {
  const auto chief = std::ranges::find_if(
      tasks_, [](const auto& task) { return task->is_chief && task->pid > 0; });
  const bool saves = !argument_value(options_.task_arguments, "train_dir").empty();
  return saves && chief != tasks_.end() ? chief->get() : nullptr;
}

bool Supervisor::stop_in_order(int signal) {
  LocalTask* const chief = who_can_save();
  if (chief == nullptr) {
    stop_processes(signal);
    return false;
  }
  cancel_restarts();
  spawn(stop_after(*chief, signal));
  return true;
}

// Ps and workers stay while the chief saves: in sync mode a step that has begun is made with them.
asio::awaitable<void> Supervisor::stop_after(LocalTask& chief, int signal) {
  end_process(chief, signal);
  while (chief.pid > 0) {
    co_await gone_.async_wait(net::kAsTuple);
  }
  if (std::ranges::any_of(tasks_, [](const auto& task) { return task->pid > 0; })) {
    stop_processes(signal);
  }
}

void Supervisor::stop_processes(int signal) {
  cancel_restarts();
  for (const auto& task : tasks_) {
    if (task->pid > 0) {
      kill(task->pid, signal);
      thaw(*task);  // a frozen process would take the signal only then
    }
  }
  start_grace(kStopGrace);
}

void Supervisor::start_grace(std::chrono::seconds grace) { spawn(kill_after(grace)); }

asio::awaitable<void> Supervisor::kill_after(std::chrono::seconds grace) {
  grace_.expires_after(grace);
  auto [error] = co_await grace_.async_wait(net::kAsTuple);
  if (error) {
    co_return;  // everybody has ended, or another wait has taken over
  }
  for (const auto& task : tasks_) {
    if (task->pid > 0) {
      events_.say(
          task->name + " did not end within " + std::to_string(grace.count()) + " s; killing it",
          LogLevel::kWarning);
      kill(task->pid, SIGKILL);
    }
  }
}

void Supervisor::kill_task(LocalTask& task) {
  if (task.pid > 0) {
    kill(task.pid, SIGKILL);
    task.fault = true;
  }
}

void Supervisor::freeze(LocalTask& task, milliseconds time) {
  kill(task.pid, SIGSTOP);
  task.frozen = true;
  spawn(thaw_after(task, time));
}

asio::awaitable<void> Supervisor::thaw_after(LocalTask& task, milliseconds delay) {
  task.thaw.expires_after(delay);
  auto [error] = co_await task.thaw.async_wait(net::kAsTuple);
  if (!error) {  // else it has ended, or was frozen anew
    thaw(task);
  }
}

void Supervisor::thaw(LocalTask& task) {
  if (task.frozen) {
    task.frozen = false;
    kill(task.pid, SIGCONT);
  }
}

asio::awaitable<void> Supervisor::read(data::FileDescriptor pipe, LineHandler handler) {
  ++readers_;
  co_await read_lines(std::move(pipe), std::move(handler));
  --readers_;
  tell_if_all_gone();
}

void Supervisor::tell_if_all_gone() {
  const bool all_gone = std::all_of(tasks_.begin(), tasks_.end(),
                                    [](const auto& task) { return task->pid < 0 && !task->waits; });
  if (held_ || !all_gone) {
    return;
  }
  grace_.cancel();
  if (readers_ == 0) {
    events_.all_gone();
  }
}

void Supervisor::spawn(asio::awaitable<void> work) {
  net::spawn(context_, std::move(work), net::rethrow);  // the launcher ends, and with it the run
}

}  // namespace disttf::roles
