// A task's own port, and any port whose previous owner may still be ending.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
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

// Listens at a task's listed address, after its predecessor. Throws
// std::system_error, or what `stop` throws.
[[nodiscard]] asio::ip::tcp::acceptor listen_where_listed(asio::io_context& context,
                                                          const net::Address& listed,
                                                          const StopSignal& stop);

// Returns why the task ends that could not listen: because of the port, or for lack of descriptors.
[[nodiscard]] Failure cannot_listen(const Task& task, const std::system_error& error);

// For a task that is restarted at the moment when its predecessor is killed. Calls `listen`, which
// throws std::system_error, and retries in short intervals for up to two seconds while the address
// is in use: the kernel needs time to clean up a killed process, and a server's task dies a moment
// after the server. Logs once that `what` ("--port 8501") is waited for. Blocks this thread. Throws
// the last exception of `listen`; or, if a signal has come to `stop`, Failure (130 or 143) at once.
[[nodiscard]] asio::ip::tcp::acceptor listen_after_predecessor(
    const std::string& what, const std::function<asio::ip::tcp::acceptor()>& listen,
    const StopSignal* stop = nullptr);

}  // namespace disttf::roles
