#include "roles/launch/shell/replica_launcher.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <csignal>
#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "net/transport/as_tuple.h"
#include "net/transport/spawn.h"
#include "net/wire/text.h"
#include "roles/launch/core/restart_policy.h"
#include "roles/launch/core/supervisor.h"
#include "roles/launch/shell/child_process.h"
#include "roles/launch/shell/console.h"
#include "roles/launch/shell/pipe_lines.h"
#include "roles/launch/shell/replica_command.h"
#include "roles/launch/shell/reserved_port.h"
#include "roles/process/stop_signal.h"
#include "roles/run/outcome.h"

namespace disttf::roles {
namespace {

using net::kAsTuple;
// What is kept of a task that is not shown, for the case that it fails.
constexpr std::size_t kKeptLines = 20;
// A process that left its group may hold a task's pipe open for ever: after the last task's end,
// lines are waited for this long.
constexpr std::chrono::seconds kDrainLimit{1};
// A shell's code for a program that was killed: this and the signal's number.
constexpr int kSignalBase = 128;

// The parts of a task, one after the other.
enum class Part : std::uint8_t { kInitializer, kCommand, kFinalizer };
constexpr std::size_t kParts = 3;

struct Program {
  std::string file;  // empty: this part has nothing to run
  std::vector<std::string> words;
};
using Programs = std::array<Program, kParts>;

Program program_of(std::string_view field, const std::vector<std::string>& words,
                   const net::Cluster& cluster, const net::TaskId& task,
                   std::string_view search_path) {
  if (words.empty()) {
    return {};
  }
  std::vector<std::string> filled = fill_placeholders(field, words, cluster, task);
  const std::optional<std::string> file = find_program(filled.front(), search_path);
  if (!file) {
    throw std::invalid_argument(
        std::string(field) + ": " + net::quoted(filled.front()) +
        " is not a program that can be run" +
        (filled.front().find('/') == std::string::npos ? "; it is in no folder of PATH" : ""));
  }
  return {.file = *file, .words = std::move(filled)};
}

Programs programs_of(const ReplicaOptions& options, const net::Cluster& cluster,
                     const net::TaskId& task) {
  return {program_of("--initializer", options.initializer, cluster, task, options.search_path),
          program_of("COMMAND", options.command, cluster, task, options.search_path),
          program_of("--finalizer", options.finalizer, cluster, task, options.search_path)};
}

std::vector<net::TaskId> tasks_of(const ReplicaOptions& options) {
  std::vector<net::TaskId> tasks;
  for (std::size_t index = 0; index < options.ps; ++index) {
    tasks.push_back({.job = net::Job::kPs, .index = index});
  }
  for (std::size_t index = 0; index < options.workers; ++index) {
    tasks.push_back({.job = net::Job::kWorker, .index = index});
  }
  return tasks;
}

class ReplicaLauncher {
 public:
  explicit ReplicaLauncher(const ReplicaOptions& options)
      : options_(options),
        signals_(context_, SIGINT, SIGTERM, SIGCHLD),
        grace_(context_),
        drain_(context_) {}
  int run();

 private:
  struct Task {
    net::TaskId id;
    std::string prefix;  // "[worker:1]"
    ReservedPort port;
    bool shown = false;
    Programs programs = {};
    std::size_t next = 0;  // the part that comes after the one that runs
    pid_t pid = -1;        // of the part that runs; -1: all is over
    bool failed = false;
    bool ran = false;  // the command was started
    std::deque<std::string> kept = {};

    [[nodiscard]] bool runs(Part part) const {
      return pid > 0 && next == static_cast<std::size_t>(part) + 1;
    }
  };

  void add_task(const net::TaskId& id);
  void start_next(Task& task);
  [[nodiscard]] bool may_run(const Task& task, Part part) const;
  void start(Task& task, const Program& program);
  asio::awaitable<void> forward(data::FileDescriptor fd, LineHandler handler,
                                LinesPaused is_paused);
  void on_line(Task& task, std::string_view line, bool is_output);
  asio::awaitable<void> watch_signals();
  void reap();
  void on_exit(Task& task, const Ending& ending);
  void fail(Task& task, const Ending& ending);
  void end_run(int exit_code, int signal);
  asio::awaitable<void> kill_late();
  asio::awaitable<void> stop_late();
  [[nodiscard]] bool all_gone() const;
  [[nodiscard]] bool workers_are_done() const;
  void say(const std::string& sentence) { console_.say(sentence, LogLevel::kWarning); }
  void spawn(asio::awaitable<void> work);

  const ReplicaOptions& options_;
  asio::io_context context_{1};
  asio::signal_set signals_;
  asio::steady_timer grace_;
  asio::steady_timer drain_;
  Console console_;
  net::Cluster cluster_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::size_t readers_ = 0;       // pipes that have not ended
  std::optional<int> exit_code_;  // once it is decided
  const Task* failed_ = nullptr;  // whose failure has decided it
  bool killed_ = false;           // who did not end when told to
};

int ReplicaLauncher::run() {
  for (const net::TaskId& id : tasks_of(options_)) {
    add_task(id);
  }
  for (const auto& task : tasks_) {
    task->programs = programs_of(options_, cluster_, task->id);
  }
  spawn(watch_signals());
  for (const auto& task : tasks_) {
    start_next(*task);
  }
  context_.run();
  if (failed_ != nullptr) {
    for (const std::string& line : failed_->kept) {
      console_.print_line_of(failed_->id, line);
    }
  }
  return exit_code_.value_or(kDone);
}

// Reserves the task's port and enters it into the cluster.
void ReplicaLauncher::add_task(const net::TaskId& id) {
  const bool is_worker = id.job == net::Job::kWorker;
  auto task = std::make_unique<Task>(Task{
      .id = id,
      .prefix = log_prefix(id),
      .port = ReservedPort(context_),
      .shown = !options_.worker_logs || (is_worker && options_.worker_logs->contains(id.index))});
  (is_worker ? cluster_.workers : cluster_.ps).push_back(task->port.address());
  tasks_.push_back(std::move(task));
}

// What comes after the part that has ended, if anything.
void ReplicaLauncher::start_next(Task& task) {
  while (task.next < kParts) {
    const Part part{static_cast<std::uint8_t>(task.next)};
    const Program& program = task.programs.at(task.next);
    ++task.next;
    if (!program.file.empty() && may_run(task, part)) {
      task.ran = task.ran || part == Part::kCommand;
      start(task, program);
      return;
    }
  }
}

bool ReplicaLauncher::may_run(const Task& task, Part part) const {
  return part == Part::kFinalizer ? task.ran && !killed_ : !task.failed && !exit_code_;
}

void ReplicaLauncher::start(Task& task, const Program& program) {
  ChildProcess process = start_child({.program = program.file,
                                      .name = program.words.front(),
                                      .arguments = {program.words.begin() + 1, program.words.end()},
                                      .variables = task_variables(cluster_, task.id)});
  task.pid = process.pid;
  const auto handler = [this, &task](bool is_output) {
    return [this, &task, is_output](std::string_view line) { on_line(task, line, is_output); };
  };
  spawn(forward(std::move(process.standard_output), handler(true), Console::is_output_full));
  spawn(forward(std::move(process.standard_error), handler(false), {}));
}

asio::awaitable<void> ReplicaLauncher::forward(data::FileDescriptor fd, LineHandler handler,
                                               LinesPaused is_paused) {
  ++readers_;
  co_await read_lines(std::move(fd), std::move(handler), std::move(is_paused));
  --readers_;
  if (readers_ == 0 && all_gone()) {
    drain_.cancel();
    signals_.cancel();
  }
}

void ReplicaLauncher::on_line(Task& task, std::string_view line, bool is_output) {
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

asio::awaitable<void> ReplicaLauncher::watch_signals() {
  while (!all_gone()) {
    auto [error, signal] = co_await signals_.async_wait(kAsTuple);
    if (error) {
      co_return;
    }
    if (signal == SIGCHLD) {
      reap();
    } else {
      end_run(exit_code_for(signal), signal);
    }
  }
  grace_.cancel();
  if (readers_ > 0) {
    spawn(stop_late());
  }
  while (readers_ > 0) {  // results that nobody takes, as long as he wants who can send these
    auto [error, signal] = co_await signals_.async_wait(kAsTuple);
    if (!error && signal != SIGCHLD) {
      context_.stop();
    }
  }
}

// A task's group ends with its leader. Until that is reaped nobody else can have its number.
void ReplicaLauncher::reap() {
  for (const auto& task : tasks_) {
    siginfo_t ended{};
    if (task->pid < 0 ||
        waitid(P_PID, static_cast<id_t>(task->pid), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        ended.si_pid != task->pid) {
      continue;
    }
    kill(-task->pid, SIGKILL);
    int status = 0;
    waitpid(task->pid, &status, 0);
    task->pid = -1;
    on_exit(*task, ending_of(status));
  }
}

void ReplicaLauncher::on_exit(Task& task, const Ending& ending) {
  if (ending.signal != 0 || ending.exit_code != kDone) {
    fail(task, ending);
  }
  start_next(task);
  if (!exit_code_ && workers_are_done()) {
    end_run(kDone, SIGTERM);
  }
}

void ReplicaLauncher::fail(Task& task, const Ending& ending) {
  constexpr std::array<std::string_view, kParts> kNames = {"'s initializer", "", "'s finalizer"};
  const std::size_t part = task.next - 1;
  const std::string sentence = task.prefix + std::string(kNames.at(part)) + " " + to_string(ending);
  task.failed = true;
  if (!exit_code_) {
    failed_ = &task;
    say(sentence + "; stopping the others");
    end_run(ending.signal != 0 ? kSignalBase + ending.signal : ending.exit_code, SIGTERM);
  } else if (part == static_cast<std::size_t>(Part::kFinalizer)) {
    say(sentence + "; the run was over already");
  }  // else it was told to end
}

// Finalizers are not told to stop: they are what is to be done at the end.
void ReplicaLauncher::end_run(int exit_code, int signal) {
  exit_code_ = exit_code_.value_or(exit_code);
  for (const auto& task : tasks_) {
    if (task->pid > 0 && !task->runs(Part::kFinalizer)) {
      kill(-task->pid, signal);
      kill(-task->pid, SIGCONT);  // a process that is stopped takes the signal only then
    }
  }
  spawn(kill_late());
}

asio::awaitable<void> ReplicaLauncher::kill_late() {
  if (all_gone()) {
    co_return;
  }
  grace_.expires_after(kStopGrace);
  auto [error] = co_await grace_.async_wait(kAsTuple);
  if (error) {
    co_return;  // everybody has ended, or another wait has taken over
  }
  killed_ = true;
  for (const auto& task : tasks_) {
    if (task->pid > 0) {
      say(task->prefix + " did not end within " + std::to_string(kStopGrace.count()) +
          " s; killing it");
      kill(-task->pid, SIGKILL);
    }
  }
}

asio::awaitable<void> ReplicaLauncher::stop_late() {
  do {
    drain_.expires_after(kDrainLimit);
    auto [error] = co_await drain_.async_wait(kAsTuple);
    if (error) {
      co_return;
    }
  } while (Console::is_output_full());  // what is left waits for the reader
  context_.stop();
}

bool ReplicaLauncher::all_gone() const {
  return std::all_of(tasks_.begin(), tasks_.end(), [](const auto& task) { return task->pid < 0; });
}

bool ReplicaLauncher::workers_are_done() const {
  return std::all_of(tasks_.begin(), tasks_.end(), [](const auto& task) {
    return task->id.job != net::Job::kWorker || task->pid < 0;
  });
}

void ReplicaLauncher::spawn(asio::awaitable<void> work) {
  net::spawn(context_, std::move(work), net::rethrow);  // the launcher ends, and with it the run
}

}  // namespace

void validate(const ReplicaOptions& options) {
  // Stands for the ports that are not known yet: no word is a program's name because of them.
  net::Cluster cluster;
  for (const net::TaskId& task : tasks_of(options)) {
    static_cast<void>(programs_of(options, cluster, task));
  }
}

int run_replica_launcher(const ReplicaOptions& options) { return ReplicaLauncher(options).run(); }

}  // namespace disttf::roles
