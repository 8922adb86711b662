#include "roles/launch/shell/pipe_lines.h"

#include <asio/posix/stream_descriptor.hpp>
#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <string>

#include "net/waiting/as_tuple.h"

namespace disttf::roles {
namespace {

// A longer line is split, to bound memory.
constexpr std::size_t kMaxLineBytes = 64 * 1024;
// Between two checks whether reading may continue.
constexpr std::chrono::milliseconds kPauseOfReading{20};

}  // namespace

asio::awaitable<void> read_lines(data::FileDescriptor fd, LineHandler handler,
                                 LinesPaused is_paused) {
  asio::steady_timer pause(co_await asio::this_coro::executor);
  // The descriptor closes the pipe when the coroutine ends.
  asio::posix::stream_descriptor descriptor(co_await asio::this_coro::executor, fd.release());
  std::string text;
  while (true) {
    // Not reading fills the pipe, which blocks the child until the reader of our output catches up.
    while (is_paused && is_paused()) {
      pause.expires_after(kPauseOfReading);
      co_await pause.async_wait(net::kAsTuple);
    }
    auto [error, length] = co_await asio::async_read_until(
        descriptor, asio::dynamic_buffer(text, kMaxLineBytes), '\n', net::kAsTuple);
    // not_found: the buffer is full without a line feed, so its content is passed on as a line. Any
    // other error is the end of the pipe.
    if (error && error != asio::error::not_found) {
      break;
    }
    const bool has_end = !error;
    const std::size_t taken = has_end ? length : text.size();
    handler(std::string_view(text).substr(0, has_end ? taken - 1 : taken));
    text.erase(0, taken);
  }
  if (!text.empty()) {
    handler(text);  // the child died in the middle of a line
  }
}

}  // namespace disttf::roles
