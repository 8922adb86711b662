// Lines that are sent as they come, to one reader. Who writes them never waits: what a slow reader
// leaves is kept up to a bound, and then either left out and counted, or the reader is given up.
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
    kLeaveOut,  // a log: a sentence says how many lines are missing
    kGiveUp,    // events with numbers: the stream ends, and who wants to may come again
  };

  explicit HttpLineStream(asio::io_context& context, WhenFull when_full = WhenFull::kLeaveOut);

  void append(std::string_view line);  // without its end
  void end();                          // no more lines; those that wait are still sent

  // Waits for lines and moves them to `text`. False: there will be none any more.
  asio::awaitable<bool> take(std::string& text);

 private:
  asio::steady_timer wake_;
  WhenFull when_full_;
  std::string pending_;
  std::size_t left_out_ = 0;  // lines
  bool ended_ = false;
};

}  // namespace disttf::net
