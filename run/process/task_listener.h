// A task's own port, opened the same way by every role.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>
#include <system_error>

#include "net/tcp/listener.h"
#include "run/outcome.h"
#include "run/process/stop_signal.h"
#include "run/task.h"

namespace disttf::roles {

// Listens on the task's port (or on the socket that it was started with) and logs that. `hooks.log`
// is filled in. `is_server`: the task waits for requests of a driver. Throws cannot_listen(), or
// what `stop` throws if a signal has come meanwhile.
[[nodiscard]] std::unique_ptr<net::Listener> open_task_listener(asio::io_context& context,
                                                                const Task& task,
                                                                net::ListenerHooks hooks,
                                                                const StopSignal& stop,
                                                                bool is_server = false);

// Listens at a task's listed address, after its predecessor (predecessor.h). Throws
// std::system_error, or what `stop` throws.
[[nodiscard]] asio::ip::tcp::acceptor listen_where_listed(asio::io_context& context,
                                                          const net::Address& listed,
                                                          const StopSignal& stop);

// Returns why the task ends that could not listen: because of the port, or for lack of descriptors.
[[nodiscard]] Failure cannot_listen(const Task& task, const std::system_error& error);

}  // namespace disttf::roles
