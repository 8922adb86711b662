#include "roles/launch/supervisor.h"

#include <sys/wait.h>

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/use_awaitable.hpp>
#include <csignal>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "roles/launch/child_process.h"
#include "roles/launch/pipe_lines.h"
#include "roles/outcome.h"

namespace disttf::roles {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr auto kToken = asio::experimental::as_tuple(asio::use_awaitable);
// After the run's end the others are gone within 2 s; a multiple of it for a busy machine.
constexpr std::chrono::seconds kFinishGrace{10};

std::vector<net::TaskId> tasks_of(const LaunchOptions& options) {
  std::vector<net::TaskId> tasks;
  for (std::size_t index = 0; index < options.ps; ++index) {
    tasks.push_back({.job = net::Job::kPs, .index = index});
  }
  if (options.chief) {
    tasks.push_back({.job = net::Job::kChief, .index = 0});
  }
  for (std::size_t index = 0; index < options.workers; ++index) {
    tasks.push_back({.job = net::Job::kWorker, .index = index});
  }
  return tasks;
}

RestartPolicy::Part part_of(const net::TaskId& task, const LaunchOptions& options) {
  if (task.job == net::Job::kPs) {
    return RestartPolicy::Part::kPs;
  }
  const bool is_chief = task.job == net::Job::kChief || (!options.chief && task.index == 0);
  return is_chief ? RestartPolicy::Part::kChief : RestartPolicy::Part::kWorker;
}

std::vector<RestartPolicy::Part> parts_of(const LaunchOptions& options) {
  std::vector<RestartPolicy::Part> parts;
  for (const net::TaskId& task : tasks_of(options)) {
    parts.push_back(part_of(task, options));
  }
  return parts;
}

}  // namespace

Supervisor::Supervisor(asio::io_context& context, const LaunchOptions& options,
                       SupervisorEvents events)
    : context_(context),
      options_(options),
      events_(std::move(events)),
      grace_(context),
      policy_(options.restart, parts_of(options), std::mt19937_64(std::random_device{}())) {
  for (const net::TaskId& id : tasks_of(options_)) {
    add_task(id);
  }
}

void Supervisor::start_all() {
  // All ports are open before any task is started: nobody has to try twice.
  std::vector<asio::ip::tcp::acceptor> acceptors;
  for (const auto& task : tasks_) {
    acceptors.push_back(task->port.listen());
  }
  for (std::size_t each = 0; each < tasks_.size(); ++each) {
    start(*tasks_[each], acceptors[each].native_handle());
  }
  // From here on only the process listens: when it dies, connections to it are refused.
}

// Reserves the task's port and enters it into the cluster.
void Supervisor::add_task(const net::TaskId& id) {
  auto task = std::make_unique<LocalTask>(
      LocalTask{.number = tasks_.size(),
                .id = id,
                .name = log_prefix(id),
                .is_chief = part_of(id, options_) == RestartPolicy::Part::kChief,
                .port = ReservedPort(context_),
                .restart = asio::steady_timer(context_),
                .thaw = asio::steady_timer(context_)});
  const net::Address address = task->port.address();
  switch (id.job) {
    case net::Job::kPs:
      cluster_.ps.push_back(address);
      break;
    case net::Job::kChief:
      cluster_.chief.push_back(address);
      break;
    default:
      cluster_.workers.push_back(address);
      break;
  }
  tasks_.push_back(std::move(task));
}

std::vector<std::string> Supervisor::arguments_for(const net::TaskId& id) const {
  std::vector<std::string> arguments = {std::string(net::job_name(id.job)),
                                        "--task_index=" + std::to_string(id.index),
                                        "--ps_hosts=" + net::to_string(cluster_.ps)};
  if (!cluster_.workers.empty()) {
    arguments.push_back("--worker_hosts=" + net::to_string(cluster_.workers));
  }
  if (!cluster_.chief.empty()) {
    arguments.push_back("--chief_host=" + net::to_string(cluster_.chief));
  }
  arguments.insert(arguments.end(), options_.task_arguments.begin(), options_.task_arguments.end());
  return arguments;
}

void Supervisor::start(LocalTask& task, int listen_fd) {
  ChildProcess process = start_child(
      {.arguments = arguments_for(task.id), .listen_fd = listen_fd, .progress = task.is_chief});
  task.pid = process.pid;
  task.fault = false;
  policy_.started(task.number, Clock::now());
  const auto to = [this, &task](bool is_result) {
    return [this, &task, is_result](std::string_view line) { events_.line(task, line, is_result); };
  };
  if (task.is_chief) {
    events_.chief_changed(task);
    spawn(read_lines(std::move(process.progress), events_.progress));
  }
  spawn(read_lines(std::move(process.standard_output), to(task.is_chief)));
  spawn(read_lines(std::move(process.standard_error), to(false)));
}

void Supervisor::reap() {
  for (const auto& task : tasks_) {
    int status = 0;
    if (task->pid > 0 && waitpid(task->pid, &status, WNOHANG) == task->pid) {
      task->pid = -1;
      on_exit(*task, status);
    }
  }
  tell_if_all_gone();
}

void Supervisor::on_exit(LocalTask& task, int status) {
  const bool was_finished = policy_.finished();
  task.frozen = false;
  task.thaw.cancel();
  const RestartPolicy::Decision decision =
      policy_.ended(task.number, ending_of(status, task.fault), Clock::now());
  if (!decision.sentence.empty()) {
    events_.say(task.name + " " + decision.sentence);
  }
  switch (decision.action) {
    case RestartPolicy::Action::kLeave:
      break;
    case RestartPolicy::Action::kRestart:
      task.waits = true;
      spawn(restart_after(task, decision.delay));
      break;
    case RestartPolicy::Action::kStop:
      stop_processes(SIGTERM);
      break;
  }
  if (task.is_chief) {
    events_.chief_changed(task);
  }
  if (policy_.finished() && !was_finished) {
    cancel_restarts();
    start_grace(kFinishGrace);
  }
}

asio::awaitable<void> Supervisor::restart_after(LocalTask& task, milliseconds delay) {
  task.restart.expires_after(delay);
  co_await task.restart.async_wait(kToken);
  if (!task.waits) {
    co_return;  // cancelled
  }
  task.waits = false;
  try {
    asio::ip::tcp::acceptor acceptor = task.port.listen();
    start(task, acceptor.native_handle());
  } catch (const std::system_error& error) {
    events_.say(task.name + " cannot be started again: " + error.what() + "; stopping the others");
    stop(kError, SIGTERM);
    tell_if_all_gone();
  }
}

void Supervisor::cancel_restarts() {
  for (const auto& task : tasks_) {
    task->waits = false;
    task->restart.cancel();
  }
}

void Supervisor::stop(int exit_code, int signal) {
  policy_.stop(exit_code);
  stop_processes(signal);
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
  auto [error] = co_await grace_.async_wait(kToken);
  if (error) {
    co_return;  // everybody has ended, or another wait has taken over
  }
  for (const auto& task : tasks_) {
    if (task->pid > 0) {
      events_.say(task->name + " did not end within " + std::to_string(grace.count()) +
                  " s; killing it");
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
  auto [error] = co_await task.thaw.async_wait(kToken);
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

void Supervisor::tell_if_all_gone() {
  if (std::all_of(tasks_.begin(), tasks_.end(),
                  [](const auto& task) { return task->pid < 0 && !task->waits; })) {
    grace_.cancel();
    events_.all_gone();
  }
}

void Supervisor::spawn(asio::awaitable<void> work) {
  asio::co_spawn(context_, std::move(work), [](std::exception_ptr exception) {
    if (exception) {
      std::rethrow_exception(exception);  // out of run(): the launcher ends, and with it the run
    }
  });
}

}  // namespace disttf::roles
