// Starting a coroutine whose exception does not get lost.
#pragma once

#include <asio/co_spawn.hpp>
#include <exception>
#include <utility>

namespace disttf::net {

// Runs `work`, an awaitable or a function that returns one, on `context`; a function lives as long
// as its coroutine. `on_exception(std::exception_ptr)` is told what has ended it, if something has.
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

// What then comes out of the context's run(), and ends whoever called that.
inline void rethrow(const std::exception_ptr& exception) { std::rethrow_exception(exception); }

}  // namespace disttf::net
