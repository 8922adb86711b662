// A task's own port, opened the same way by every role.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>
#include <system_error>

#include "net/transport/server.h"
#include "roles/process/stop_signal.h"
#include "roles/run/outcome.h"
#include "roles/run/task.h"

namespace disttf::roles {

// Listens on the task's port (or on the socket it was started with) and says so in the log.
// `hooks.log` is filled in. `is_server`: the task waits for orders. Throws cannot_listen(), or what
// `stop` does where a signal has come to it meanwhile.
[[nodiscard]] std::unique_ptr<net::Listener> open_task_listener(asio::io_context& context,
                                                                const Task& task,
                                                                net::ServerHooks hooks,
                                                                const StopSignal& stop,
                                                                bool is_server = false);

// Listens where the lists say that a task is, after its predecessor (predecessor.h). Throws
// std::system_error, or what `stop` does.
[[nodiscard]] asio::ip::tcp::acceptor listen_where_listed(asio::io_context& context,
                                                          const net::Address& listed,
                                                          const StopSignal& stop);

// Why the task ends that could not listen: because of the port, or for lack of descriptors.
[[nodiscard]] Failure cannot_listen(const Task& task, const std::system_error& error);

}  // namespace disttf::roles
