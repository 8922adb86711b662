// Asio for shells: the timer of a core's deadline, and handlers that must not end a task.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <string_view>
#include <system_error>
#include <utility>

namespace disttf::roles {

// Calls `on_time` at `deadline`, on the timer's loop, replacing the timer's earlier setting;
// steady_clock's max: never.
template <typename OnTime>
void call_at(asio::steady_timer& timer, std::chrono::steady_clock::time_point deadline,
             OnTime on_time) {
  if (deadline == std::chrono::steady_clock::time_point::max()) {
    timer.cancel();
    return;
  }
  timer.expires_at(deadline);
  timer.async_wait([on_time = std::move(on_time)](const std::error_code& error) {
    if (!error) {  // else the timer was reset or cancelled
      on_time();
    }
  });
}

// Serving that a task can do without, such as a page or a metrics address.

// Runs the handlers of `context` until it has no more work. If a handler throws, logs a warning
// that begins with `what` ("the page"), and goes on: the task must not end, and the handlers that
// other threads post must not pile up. Of equal warnings in a row it logs the first.
void keep_running(asio::io_context& context, std::string_view what) noexcept;

}  // namespace disttf::roles
