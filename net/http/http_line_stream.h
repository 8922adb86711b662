// Lines that are sent to one reader as they are written. The writer never waits. Lines for a slow
// reader are kept up to a limit; beyond it they are dropped and counted, or the stream ends.
//
// Everything runs on the one thread that runs the io_context.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace disttf::net {

class HttpLineStream {
 public:
  static constexpr std::size_t kMaxPendingBytes = 256 * 1024;

  enum class WhenFull : std::uint8_t {
    kLeaveOut,  // for logs: a sentence reports the number of dropped lines
    kGiveUp,    // for numbered events: the stream ends, and the reader may reconnect
  };

  explicit HttpLineStream(asio::io_context& context, WhenFull when_full = WhenFull::kLeaveOut);

  void append(std::string_view line);  // without a line end
  void end();                          // no more lines; pending ones are still sent

  // Waits for lines and moves them to `text`. False: there will be no more.
  asio::awaitable<bool> take(std::string& text);

 private:
  asio::steady_timer wake_;
  WhenFull when_full_;
  std::string pending_;
  std::size_t left_out_ = 0;  // lines
  bool ended_ = false;
};

}  // namespace disttf::net
