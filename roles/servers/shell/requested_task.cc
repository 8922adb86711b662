#include "roles/servers/shell/requested_task.h"

#include <sys/wait.h>

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <csignal>
#include <utility>

#include "net/waiting/as_tuple.h"
#include "roles/launch/core/restart_policy.h"
#include "roles/launch/core/supervisor.h"
#include "roles/launch/shell/child_output.h"
#include "storage/download/datasets.h"

namespace disttf::roles {
namespace {

std::string timeout_flag(const char* name, std::chrono::seconds value) {
  return "--" + std::string(name) + "_timeout=" + std::to_string(value.count());
}

// "10:17:27.762 E sentence" without time and level, for a message of another task.
std::string sentence_of(const std::string& line) {
  constexpr std::size_t kTimeLength = 12;
  constexpr std::string_view kError = " E ";
  return line.compare(std::min(kTimeLength, line.size()), kError.size(), kError) == 0
             ? line.substr(kTimeLength + kError.size())
             : line;
}

}  // namespace

RequestedTask::RequestedTask(asio::io_context& context, const Task& server,
                             std::vector<std::string> arguments)
    : context_(context),
      server_(server),
      arguments_(std::move(arguments)),
      child_signals_(context, SIGCHLD),
      grace_(context) {}

std::vector<std::string> RequestedTask::arguments_for(const net::RunTaskRequest& request) const {
  // The driver is the chief of the run and is in no list, so the lists get a stand-in for it.
  const net::Cluster run = net::driven(server_.cluster);
  std::vector<std::string> words = {std::string(net::job_name(server_.self.job)),
                                    "--task_index=" + std::to_string(server_.self.index),
                                    "--ps_hosts=" + net::to_string(run.ps),
                                    "--worker_hosts=" + net::to_string(run.workers),
                                    "--chief_host=" + net::to_string(run.chief),
                                    timeout_flag("start", request.start),
                                    timeout_flag("peer", request.peer),
                                    timeout_flag("worker", request.worker),
                                    timeout_flag("heartbeat", request.heartbeat_timeout)};
  const bool has_own_data =
      std::any_of(arguments_.begin(), arguments_.end(),
                  [](const std::string& word) { return word.starts_with("--dataset="); });
  const DatasetRow* const dataset = find_dataset_of_number(request.data);
  // The server's own --dataset has precedence over the driver's.
  if (!has_own_data && dataset != nullptr) {
    words.push_back("--dataset=" + std::string(dataset->name));
  }
  // Flags of the server's machine, which the driver does not choose.
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  return words;
}

void RequestedTask::start(const net::RunTaskRequest& request, int listen_fd) {
  process_ =
      start_child_with_retries({.arguments = arguments_for(request), .listen_fd = listen_fd});
  asio::co_spawn(context_, print_results(std::move(process_.standard_output)), asio::detached);
}

asio::awaitable<void> RequestedTask::print_results(data::FileDescriptor output) {
  co_await read_lines(std::move(output), [this](std::string_view line) { print(line); });
}

// Returns how the task has ended, with its last line: its standard error is read to the end first.
asio::awaitable<net::TaskEnd> RequestedTask::ended() {
  std::string last_line;
  co_await read_lines(std::move(process_.standard_error), [&](std::string_view line) {
    print(line);
    last_line = line;
  });
  int status = 0;
  // The output has ended, but the process may still be ending; SIGCHLD announces it.
  // The signal set queues a SIGCHLD that arrives between the two calls, so none is missed.
  while (waitpid(process_.pid, &status, WNOHANG) != process_.pid) {
    co_await child_signals_.async_wait(net::kAsTuple);
  }
  process_.pid = -1;
  // The pid may belong to another process from now on, and must not be killed later.
  grace_.cancel();
  const Ending ending = ending_of(status);
  co_return net::TaskEnd{.exit_code = static_cast<std::uint8_t>(ending.exit_code),
                         .signal = static_cast<std::uint8_t>(ending.signal),
                         .last_line = sentence_of(last_line)};
}

void RequestedTask::stop() {
  if (is_running()) {
    kill(process_.pid, SIGTERM);
    asio::co_spawn(context_, kill_after_grace(), asio::detached);
  }
}

asio::awaitable<void> RequestedTask::kill_after_grace() {
  grace_.expires_after(kStopGrace);
  const auto [error] = co_await grace_.async_wait(net::kAsTuple);
  if (!error && is_running()) {
    kill(process_.pid, SIGKILL);
  }
}

void RequestedTask::print(std::string_view line) { console_.print_line_of(server_.self, line); }

}  // namespace disttf::roles
