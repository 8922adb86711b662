// The single timer of a shell whose core has a deadline().
#pragma once

#include <asio/steady_timer.hpp>
#include <chrono>
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

}  // namespace disttf::roles
