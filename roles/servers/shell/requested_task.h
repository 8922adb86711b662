// The task that a driver requests from a server (net/wire/server_requests.h), as a child process
// of this same file that inherits the server's listening socket.
//
// Runs on the thread of the io_context, which must be the process's last thread: the kernel kills
// the child when that thread ends.
#pragma once

#include <sys/types.h>

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "net/wire/server_requests.h"
#include "roles/launch/shell/child_output.h"
#include "roles/launch/shell/child_process.h"
#include "run/task.h"

namespace disttf::roles {

class RequestedTask {
 public:
  // `server`: its task is the child's; its lists, led by the driver, are the run's cluster.
  // `arguments`: additional words of every child, from the server's own command line.
  RequestedTask(asio::io_context& context, const Task& server, std::vector<std::string> arguments);

  // Starts the process, whose output goes to standard error after its name. `listen_fd` is
  // borrowed. REQUIRES: none runs. Throws std::system_error.
  void start(const net::RunTaskRequest& request, int listen_fd);
  [[nodiscard]] bool is_running() const noexcept { return process_.pid > 0; }
  [[nodiscard]] bool is(pid_t pid) const noexcept { return process_.pid == pid; }
  // Waits for its end. Call once for each start(), soon after it.
  asio::awaitable<net::TaskEnd> ended();
  // Signals it to end, and kills it if it takes longer than kStopGrace.
  void stop();

 private:
  [[nodiscard]] std::vector<std::string> arguments_for(const net::RunTaskRequest& request) const;
  asio::awaitable<void> print_results(data::FileDescriptor output);
  asio::awaitable<void> kill_after_grace();
  void print(std::string_view line);

  asio::io_context& context_;
  const Task& server_;
  const std::vector<std::string> arguments_;
  asio::signal_set child_signals_;
  asio::steady_timer grace_;
  Console console_;
  ChildProcess process_;  // its pid is -1 while none runs
};

}  // namespace disttf::roles
