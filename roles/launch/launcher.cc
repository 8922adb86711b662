#include "roles/launch/launcher.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

#include "net/cluster.h"
#include "roles/launch/child_process.h"
#include "roles/launch/console.h"
#include "roles/launch/pipe_lines.h"
#include "roles/launch/reserved_port.h"
#include "roles/outcome.h"
#include "roles/progress.h"
#include "roles/stop_signal.h"

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

class Launcher {
 public:
  explicit Launcher(const LaunchOptions& options);
  int run();

 private:
  struct Child {
    std::size_t number = 0;  // its place in children_, and the policy's name for it
    net::TaskId task;
    std::string name;  // "[worker:1]"
    bool is_chief = false;
    ReservedPort port;
    pid_t pid = -1;              // -1 while no process of the task lives
    asio::steady_timer restart;  // runs while `waits`
    bool waits = false;          // to be started again
    asio::steady_timer thaw;     // runs while this process is frozen
    bool frozen = false;
    bool fault = false;  // this process was killed on purpose
  };

  void add_task(const net::TaskId& task);
  void start(Child& child, int listen_fd);
  [[nodiscard]] std::vector<std::string> arguments_for(const net::TaskId& task) const;
  asio::awaitable<void> watch_signals();
  void reap();
  void on_exit(Child& child, int status);
  asio::awaitable<void> restart_after(Child& child, milliseconds delay);
  void cancel_restarts();
  void stop_children(int signal);
  asio::awaitable<void> kill_after(std::chrono::seconds grace);
  void start_grace(std::chrono::seconds grace);
  void on_progress(std::string_view record);
  void make_fault(const ProcessFault& fault);
  asio::awaitable<void> thaw_after(Child& child, milliseconds delay);
  static void thaw(Child& child);
  void say(const std::string& sentence) { console_.print_error("disttf launch: " + sentence); }
  [[nodiscard]] bool all_gone() const;
  void spawn(asio::awaitable<void> work);

  const LaunchOptions& options_;
  asio::io_context context_{1};
  asio::signal_set signals_;
  asio::steady_timer grace_;
  Console console_;
  net::Cluster cluster_;
  RestartPolicy policy_;
  std::vector<std::unique_ptr<Child>> children_;  // in the policy's order
  ProgressMeter progress_;
  std::optional<FaultPlan> faults_;
};

Launcher::Launcher(const LaunchOptions& options)
    : options_(options),
      signals_(context_, SIGINT, SIGTERM, SIGCHLD),
      grace_(context_),
      policy_(options.restart, parts_of(options), std::mt19937_64(std::random_device{}())) {}

int Launcher::run() {
  for (const net::TaskId& task : tasks_of(options_)) {
    add_task(task);
  }
  if (options_.chaos) {
    std::vector<std::size_t> all(children_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    faults_.emplace(*options_.chaos, std::move(all));
    say("chaos: seed " + std::to_string(options_.chaos->seed) + ", " +
        std::to_string(options_.chaos->per_1000) + " faults in 1000 steps");
  }
  spawn(watch_signals());
  // All ports are open before any task is started: nobody has to try twice.
  std::vector<asio::ip::tcp::acceptor> acceptors;
  for (const auto& child : children_) {
    acceptors.push_back(child->port.listen());
  }
  for (std::size_t each = 0; each < children_.size(); ++each) {
    start(*children_[each], acceptors[each].native_handle());
  }
  // From here on only the child listens: when it dies, connections to it are refused.
  acceptors.clear();
  context_.run();
  return policy_.exit_code().value_or(kDone);
}

// Reserves the task's port and enters it into the cluster.
void Launcher::add_task(const net::TaskId& task) {
  auto child = std::make_unique<Child>(
      Child{.number = children_.size(),
            .task = task,
            .name = log_prefix(task),
            .is_chief = part_of(task, options_) == RestartPolicy::Part::kChief,
            .port = ReservedPort(context_),
            .restart = asio::steady_timer(context_),
            .thaw = asio::steady_timer(context_)});
  const net::Address address = child->port.address();
  switch (task.job) {
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
  children_.push_back(std::move(child));
}

std::vector<std::string> Launcher::arguments_for(const net::TaskId& task) const {
  std::vector<std::string> arguments = {std::string(net::job_name(task.job)),
                                        "--task_index=" + std::to_string(task.index),
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

void Launcher::start(Child& child, int listen_fd) {
  ChildProcess process = start_child(
      {.arguments = arguments_for(child.task), .listen_fd = listen_fd, .progress = child.is_chief});
  child.pid = process.pid;
  child.fault = false;
  policy_.started(child.number, Clock::now());
  const auto to_error = [this, prefix = child.name + " "](std::string_view line) {
    console_.print_error(prefix + std::string(line));
  };
  if (child.is_chief) {
    console_.draw_live(progress_.on_chief_away());
    spawn(read_lines(std::move(process.standard_output),
                     [this](std::string_view line) { console_.print_output(line); }));
    spawn(read_lines(std::move(process.progress),
                     [this](std::string_view record) { on_progress(record); }));
  } else {
    spawn(read_lines(std::move(process.standard_output), to_error));
  }
  spawn(read_lines(std::move(process.standard_error), to_error));
}

asio::awaitable<void> Launcher::watch_signals() {
  while (true) {
    auto [error, signal] = co_await signals_.async_wait(kToken);
    if (error) {
      co_return;
    }
    if (signal == SIGCHLD) {
      reap();
    } else {
      policy_.stop(exit_code_for(signal));
      stop_children(signal);
    }
    if (all_gone()) {
      grace_.cancel();
      co_return;  // the readers drain what is left in the pipes, then run() returns
    }
  }
}

void Launcher::reap() {
  for (const auto& child : children_) {
    int status = 0;
    if (child->pid > 0 && waitpid(child->pid, &status, WNOHANG) == child->pid) {
      child->pid = -1;
      on_exit(*child, status);
    }
  }
}

void Launcher::on_exit(Child& child, int status) {
  const bool was_finished = policy_.finished();
  child.frozen = false;
  child.thaw.cancel();
  const RestartPolicy::Decision decision =
      policy_.ended(child.number, ending_of(status, child.fault), Clock::now());
  if (!decision.sentence.empty()) {
    say(child.name + " " + decision.sentence);
  }
  switch (decision.action) {
    case RestartPolicy::Action::kLeave:
      break;
    case RestartPolicy::Action::kRestart:
      child.waits = true;
      spawn(restart_after(child, decision.delay));
      break;
    case RestartPolicy::Action::kStop:
      stop_children(SIGTERM);
      break;
  }
  if (child.is_chief) {
    console_.draw_live(child.waits ? progress_.on_chief_away() : std::string());
  }
  if (policy_.finished() && !was_finished) {
    cancel_restarts();
    start_grace(kFinishGrace);
  }
}

asio::awaitable<void> Launcher::restart_after(Child& child, milliseconds delay) {
  child.restart.expires_after(delay);
  co_await child.restart.async_wait(kToken);
  if (!child.waits) {
    co_return;  // cancelled
  }
  child.waits = false;
  try {
    asio::ip::tcp::acceptor acceptor = child.port.listen();
    start(child, acceptor.native_handle());
  } catch (const std::system_error& error) {
    say(child.name + " cannot be started again: " + error.what() + "; stopping the others");
    policy_.stop(kError);
    stop_children(SIGTERM);
    if (all_gone()) {
      grace_.cancel();
      signals_.cancel();
    }
  }
}

void Launcher::cancel_restarts() {
  for (const auto& child : children_) {
    child->waits = false;
    child->restart.cancel();
  }
}

void Launcher::stop_children(int signal) {
  cancel_restarts();
  for (const auto& child : children_) {
    if (child->pid > 0) {
      kill(child->pid, signal);
      thaw(*child);  // a frozen process would take the signal only then
    }
  }
  start_grace(kStopGrace);
}

void Launcher::start_grace(std::chrono::seconds grace) { spawn(kill_after(grace)); }

asio::awaitable<void> Launcher::kill_after(std::chrono::seconds grace) {
  grace_.expires_after(grace);
  auto [error] = co_await grace_.async_wait(kToken);
  if (error) {
    co_return;  // everybody has ended, or another wait has taken over
  }
  for (const auto& child : children_) {
    if (child->pid > 0) {
      say(child->name + " did not end within " + std::to_string(grace.count()) + " s; killing it");
      kill(child->pid, SIGKILL);
    }
  }
}

void Launcher::on_progress(std::string_view record) {
  if (const std::optional<Progress> progress = parse_progress(record)) {
    console_.draw_live(progress_.on_record(*progress, Clock::now()));
    if (faults_ && !policy_.exit_code()) {
      for (const ProcessFault& fault : faults_->take_until(progress->step)) {
        make_fault(fault);
      }
    }
  }
}

void Launcher::make_fault(const ProcessFault& fault) {
  Child& child = *children_.at(fault.task);
  const bool kills = fault.kind == ProcessFault::Kind::kKill;
  say(std::string("chaos: ") + (kills ? "SIGKILL" : "SIGSTOP") + " to " + child.name + " at step " +
      std::to_string(fault.step) +
      (kills ? "" : " for " + std::to_string(fault.frozen_for.count()) + " ms") +
      (child.pid > 0 ? "" : ", which is not running"));
  if (child.pid < 0) {
    return;
  }
  kill(child.pid, kills ? SIGKILL : SIGSTOP);
  if (kills) {
    child.fault = true;
  } else {
    child.frozen = true;
    spawn(thaw_after(child, fault.frozen_for));
  }
}

asio::awaitable<void> Launcher::thaw_after(Child& child, milliseconds delay) {
  child.thaw.expires_after(delay);
  auto [error] = co_await child.thaw.async_wait(kToken);
  if (!error) {  // else it has ended, or was frozen anew
    thaw(child);
  }
}

void Launcher::thaw(Child& child) {
  if (child.frozen) {
    child.frozen = false;
    kill(child.pid, SIGCONT);
  }
}

bool Launcher::all_gone() const {
  return std::all_of(children_.begin(), children_.end(),
                     [](const auto& child) { return child->pid < 0 && !child->waits; });
}

void Launcher::spawn(asio::awaitable<void> work) {
  asio::co_spawn(context_, std::move(work), [](std::exception_ptr exception) {
    if (exception) {
      std::rethrow_exception(exception);  // out of run(): the launcher ends, and with it the run
    }
  });
}

}  // namespace

int run_launcher(const LaunchOptions& options) { return Launcher(options).run(); }

}  // namespace disttf::roles
