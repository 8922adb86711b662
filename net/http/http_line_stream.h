// Lines that are sent to one reader as they are written. The writer never waits. Lines for a slow
// reader are kept up to a limit; beyond it they are dropped and counted, or the stream ends.
//
// Belongs to the thread of its reader's connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace disttf::net {

class HttpLineStream {
 public:
  static constexpr std::size_t kMaxPendingBytes = 256 * 1024;

  enum class WhenFull : std::uint8_t {
    kLeaveOut,  // for logs: a sentence reports the number of dropped lines
    kGiveUp,    // for numbered events: the stream ends, and the reader may reconnect
  };

  explicit HttpLineStream(WhenFull when_full = WhenFull::kLeaveOut) : when_full_(when_full) {}

  void append(std::string_view line);  // without a line end
  void end();                          // no more lines; pending ones are still sent

  // The lines since the last call. Empty: there are none yet, or, after the end, no more.
  [[nodiscard]] std::string take();
  [[nodiscard]] bool has_ended() const noexcept { return ended_; }
  // For the connection: `changed` is called by append() and end(). Empty: nothing is.
  void notify(std::function<void()> changed) { changed_ = std::move(changed); }

 private:
  WhenFull when_full_;
  std::function<void()> changed_;
  std::string pending_;
  std::size_t left_out_ = 0;  // lines
  bool ended_ = false;
};

}  // namespace disttf::net
