// A task's own port, opened the same way by every role.
#pragma once

#include <asio/io_context.hpp>
#include <memory>

#include "net/server.h"
#include "roles/task.h"

namespace disttf::roles {

// Listens on the task's port (or on the socket it was started with) and says so in the log.
// `hooks.log` is filled in. `is_server`: the task waits for orders. Throws Failure(kCannotListen).
[[nodiscard]] std::unique_ptr<net::Listener> open_task_listener(asio::io_context& context,
                                                                const Task& task,
                                                                net::ServerHooks hooks,
                                                                bool is_server = false);

}  // namespace disttf::roles
