#include "roles/launcher.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/read_until.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "net/cluster.h"
#include "net/server.h"
#include "roles/child_process.h"
#include "roles/console.h"
#include "roles/outcome.h"
#include "roles/progress.h"
#include "roles/stop_signal.h"

namespace disttf::roles {
namespace {

constexpr auto kToken = asio::experimental::as_tuple(asio::use_awaitable);
// Children that were told to stop get this long before they are killed.
constexpr std::chrono::seconds kStopGrace{5};
// After the chief's success the others are gone within 2 s; a multiple of it for a busy machine.
constexpr std::chrono::seconds kFinishGrace{10};
// A longer line is cut into several: a bound on memory.
constexpr std::size_t kMaxLineBytes = 64 * 1024;

using LineHandler = std::function<void(std::string_view)>;

class Launcher {
 public:
  explicit Launcher(const LaunchOptions& options);
  int run();

 private:
  struct Child {
    net::TaskId task;
    std::string prefix;  // "[worker:1] "
    pid_t pid = -1;      // -1 once it has ended
    bool is_chief = false;
  };

  void add_task(const net::TaskId& task);
  void start(const net::TaskId& task, int listen_fd);
  [[nodiscard]] std::vector<std::string> arguments_for(const net::TaskId& task) const;
  asio::awaitable<void> read_lines(data::FileDescriptor fd, LineHandler handler);
  void watch_lines(data::FileDescriptor fd, LineHandler handler);
  asio::awaitable<void> watch_signals();
  void reap();
  void on_exit(Child& child, int status);
  void stop_children(int signal, int exit_code);
  asio::awaitable<void> kill_after(std::chrono::seconds grace);
  void start_grace(std::chrono::seconds grace);
  void on_progress(std::string_view record);
  void spawn(std::function<asio::awaitable<void>()> coroutine);

  const LaunchOptions& options_;
  asio::io_context context_{1};
  asio::signal_set signals_;
  asio::steady_timer grace_;
  Console console_;
  net::Cluster cluster_;
  std::vector<asio::ip::tcp::acceptor> acceptors_;  // of the tasks in order, until they have them
  std::vector<Child> children_;
  std::optional<int> exit_code_;  // decided by the first failure or signal
  std::optional<Progress> first_progress_;
  std::chrono::steady_clock::time_point first_progress_at_{};
};

Launcher::Launcher(const LaunchOptions& options)
    : options_(options), signals_(context_, SIGINT, SIGTERM, SIGCHLD), grace_(context_) {}

int Launcher::run() {
  std::vector<net::TaskId> tasks;
  for (std::size_t index = 0; index < options_.ps; ++index) {
    tasks.push_back({.job = net::Job::kPs, .index = index});
  }
  if (options_.chief) {
    tasks.push_back({.job = net::Job::kChief, .index = 0});
  }
  for (std::size_t index = 0; index < options_.workers; ++index) {
    tasks.push_back({.job = net::Job::kWorker, .index = index});
  }
  for (const net::TaskId& task : tasks) {
    add_task(task);
  }
  spawn([this] { return watch_signals(); });
  for (std::size_t each = 0; each < tasks.size(); ++each) {
    start(tasks[each], acceptors_[each].native_handle());
  }
  // From here on only the child listens: when it dies, connections to it are refused.
  acceptors_.clear();
  context_.run();
  return exit_code_.value_or(kDone);
}

// Opens the task's port and enters it into the cluster.
void Launcher::add_task(const net::TaskId& task) {
  asio::ip::tcp::acceptor acceptor = net::listen_on(context_, 0, net::ListenScope::kLoopback);
  fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);  // only its own child is to have it
  const net::Address address{.host = "127.0.0.1", .port = acceptor.local_endpoint().port()};
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
  acceptors_.push_back(std::move(acceptor));
}

std::vector<std::string> Launcher::arguments_for(const net::TaskId& task) const {
  const auto list = [](const std::vector<net::Address>& addresses) {
    std::string text;
    for (const net::Address& address : addresses) {
      text += (text.empty() ? "" : ",") + net::to_string(address);
    }
    return text;
  };
  std::vector<std::string> arguments = {std::string(net::job_name(task.job)),
                                        "--task_index=" + std::to_string(task.index),
                                        "--ps_hosts=" + list(cluster_.ps)};
  if (!cluster_.workers.empty()) {
    arguments.push_back("--worker_hosts=" + list(cluster_.workers));
  }
  if (!cluster_.chief.empty()) {
    arguments.push_back("--chief_host=" + list(cluster_.chief));
  }
  arguments.insert(arguments.end(), options_.task_arguments.begin(), options_.task_arguments.end());
  return arguments;
}

void Launcher::start(const net::TaskId& task, int listen_fd) {
  const bool is_chief = cluster_.is_chief(task);
  ChildProcess process =
      start_child({.arguments = arguments_for(task), .listen_fd = listen_fd, .progress = is_chief});
  Child child{.task = task,
              .prefix = "[" + std::string(net::job_name(task.job)) + ":" +
                        std::to_string(task.index) + "] ",
              .pid = process.pid,
              .is_chief = is_chief};
  const auto to_error = [this, prefix = child.prefix](std::string_view line) {
    console_.print_error(prefix + std::string(line));
  };
  if (is_chief) {
    watch_lines(std::move(process.standard_output),
                [this](std::string_view line) { console_.print_output(line); });
    watch_lines(std::move(process.progress),
                [this](std::string_view record) { on_progress(record); });
  } else {
    watch_lines(std::move(process.standard_output), to_error);
  }
  watch_lines(std::move(process.standard_error), to_error);
  children_.push_back(std::move(child));
}

void Launcher::watch_lines(data::FileDescriptor fd, LineHandler handler) {
  auto shared = std::make_shared<data::FileDescriptor>(std::move(fd));
  spawn([this, shared, handler = std::move(handler)] {
    return read_lines(std::move(*shared), handler);
  });
}

asio::awaitable<void> Launcher::read_lines(data::FileDescriptor fd, LineHandler handler) {
  asio::posix::stream_descriptor descriptor(context_, fd.release());
  std::string text;
  while (true) {
    auto [error, length] = co_await asio::async_read_until(
        descriptor, asio::dynamic_buffer(text, kMaxLineBytes), '\n', kToken);
    if (error && error != asio::error::not_found) {
      break;
    }
    const bool has_end = !error;
    const std::size_t taken = has_end ? length : text.size();
    handler(std::string_view(text).substr(0, has_end ? taken - 1 : taken));
    text.erase(0, taken);
  }
  if (!text.empty()) {
    handler(text);  // a child that died in the middle of a line
  }
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
      stop_children(signal, exit_code_for(signal));
    }
    if (std::all_of(children_.begin(), children_.end(),
                    [](const Child& child) { return child.pid < 0; })) {
      grace_.cancel();
      co_return;  // the readers drain what is left in the pipes, then run() returns
    }
  }
}

void Launcher::reap() {
  for (Child& child : children_) {
    int status = 0;
    if (child.pid > 0 && waitpid(child.pid, &status, WNOHANG) == child.pid) {
      child.pid = -1;
      on_exit(child, status);
    }
  }
}

void Launcher::on_exit(Child& child, int status) {
  const bool killed = WIFSIGNALED(status);
  const int code = killed ? static_cast<int>(kLostPeers) : WEXITSTATUS(status);
  if (code == kDone) {
    if (child.is_chief && !exit_code_) {
      start_grace(kFinishGrace);
    }
    return;
  }
  if (exit_code_) {
    return;  // stopped because of another's failure, or by a signal
  }
  const std::string name = child.prefix.substr(0, child.prefix.size() - 1);
  console_.print_error("disttf launch: " + name +
                       (killed ? " was killed by signal " + std::to_string(WTERMSIG(status)) +
                                     " (" + strsignal(WTERMSIG(status)) + ")"
                               : " ended with exit code " + std::to_string(code)) +
                       "; stopping the others");
  stop_children(SIGTERM, code);
}

void Launcher::stop_children(int signal, int exit_code) {
  if (!exit_code_) {
    exit_code_ = exit_code;
  }
  for (const Child& child : children_) {
    if (child.pid > 0) {
      kill(child.pid, signal);
    }
  }
  start_grace(kStopGrace);
}

void Launcher::start_grace(std::chrono::seconds grace) {
  spawn([this, grace] { return kill_after(grace); });
}

asio::awaitable<void> Launcher::kill_after(std::chrono::seconds grace) {
  grace_.expires_after(grace);
  auto [error] = co_await grace_.async_wait(kToken);
  if (error) {
    co_return;  // everybody has ended, or another wait has taken over
  }
  for (const Child& child : children_) {
    if (child.pid > 0) {
      console_.print_error("disttf launch: " + child.prefix + "did not end within " +
                           std::to_string(grace.count()) + " s; killing it");
      kill(child.pid, SIGKILL);
    }
  }
  if (!exit_code_) {
    exit_code_ = kError;
  }
}

void Launcher::on_progress(std::string_view record) {
  const std::optional<Progress> progress = parse_progress(record);
  if (!progress) {
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!first_progress_) {
    first_progress_ = progress;
    first_progress_at_ = now;
  }
  console_.draw_live(progress->step >= progress->train_steps
                         ? std::string()
                         : progress_line(*progress, *first_progress_, now - first_progress_at_));
}

void Launcher::spawn(std::function<asio::awaitable<void>()> coroutine) {
  asio::co_spawn(context_, std::move(coroutine), [](std::exception_ptr exception) {
    if (exception) {
      std::rethrow_exception(exception);  // out of run(): the launcher ends, and with it the run
    }
  });
}

}  // namespace

int run_launcher(const LaunchOptions& options) { return Launcher(options).run(); }

}  // namespace disttf::roles
