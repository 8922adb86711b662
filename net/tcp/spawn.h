// Starts a coroutine without losing its exception.
#pragma once

#include <asio/co_spawn.hpp>
#include <exception>
#include <utility>

namespace disttf::net {

// Runs `work`, an awaitable or a function that returns one, on `context`; a function lives as long
// as its coroutine. Calls `on_exception(std::exception_ptr)` if an exception ends it.
template <typename Context, typename Work, typename OnException>
void spawn(Context&& context, Work work, OnException on_exception) {
  asio::co_spawn(
      std::forward<Context>(context), std::move(work),
      [on_exception = std::move(on_exception)](const std::exception_ptr& exception) mutable {
        if (exception) {
          on_exception(exception);
        }
      });
}

// Makes the exception leave the context's run(), which ends the caller of run().
inline void rethrow(const std::exception_ptr& exception) { std::rethrow_exception(exception); }

}  // namespace disttf::net
